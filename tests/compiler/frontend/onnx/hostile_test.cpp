// Models that are broken, strange or hostile: each gives a message with file, node, operator and reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "compiler/frontend/onnx.h"
#include "compiler/frontend/onnx/onnx.pb.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/pass.h"
#include "support/file.h"
#include "support/function_ref.h"
#include "tests/compiler/ir/operators/cases.h"

namespace tenon::compiler {
namespace {

using testing::HasSubstr;

std::vector<std::byte> read_model(const char* name) {
  auto bytes = read_file(std::filesystem::path(TENON_SOURCE_DIR) / "tests/models" / name);
  EXPECT_TRUE(bytes) << bytes.error().str();
  return *bytes;
}

::onnx::ModelProto tiny() {
  const auto bytes = read_model("tiny_digits.onnx");
  ::onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  return model;
}

Expected<Module> import(Context& context, const ::onnx::ModelProto& model) {
  const std::string bytes = model.SerializeAsString();
  return import_onnx(context, std::as_bytes(std::span(bytes)), {.file = "m.onnx", .shapes = {}});
}

::onnx::NodeProto* node_of(::onnx::ModelProto& model, const std::string& op) {
  for (auto& node : *model.mutable_graph()->mutable_node()) {
    if (node.op_type() == op) return &node;
  }
  return nullptr;
}

::onnx::AttributeProto* attribute_of(::onnx::NodeProto* node, const std::string& name) {
  for (auto& attr : *node->mutable_attribute()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

::onnx::TensorShapeProto_Dimension* input_dim(::onnx::ModelProto& model, int axis) {
  auto& type = *model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
  return type.mutable_shape()->mutable_dim(axis);
}

struct Broken {
  std::string name;
  std::function<void(::onnx::ModelProto&)> change;
  std::string message;
};
void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

class BrokenModel : public testing::TestWithParam<Broken> {};

TEST_P(BrokenModel, IsExplained) {
  Context context;
  ::onnx::ModelProto model = tiny();
  GetParam().change(model);
  auto module = import(context, model);
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().str(), HasSubstr("m.onnx"));
  EXPECT_THAT(module.error().str(), HasSubstr(GetParam().message));
}

TEST(Hostile, RecurrentLayersSayWhatIsWrong) {
  const OperatorCase one = operator_cases().at("lstm_functions_0");
  const auto message = [&](FunctionRef<void(::onnx::NodeProto*)> change) {
    ::onnx::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(one.model));
    change(node_of(model, "LSTM"));
    Context context;
    const auto module = import(context, model);
    return module ? "imported" : module.error().str();
  };
  const auto with = [&](const std::string& name, double value) {
    return message([&](::onnx::NodeProto* node) {
      auto* attr = node->add_attribute();
      attr->set_name(name);
      attr->set_type(name == "clip" ? ::onnx::AttributeProto::FLOAT : ::onnx::AttributeProto::INT);
      if (name == "clip") attr->set_f(static_cast<float>(value));
      else attr->set_i(static_cast<int64_t>(value));
    });
  };
  const auto activations = [&](std::initializer_list<const char*> names) {
    return message([&](::onnx::NodeProto* node) {
      attribute_of(node, "activations")->clear_strings();
      for (const char* name : names) attribute_of(node, "activations")->add_strings(name);
    });
  };
  EXPECT_EQ(activations({"Relu", "Sigmoid", "Tanh"}), "imported");
  EXPECT_THAT(activations({"Relu", "Swish", "Tanh"}),
              HasSubstr("the activations [Relu, Swish, Tanh] are not supported"));
  EXPECT_THAT(activations({"Relu"}), HasSubstr("LSTM 'lstm_functions_0': error: expected 3 activations, found 1"));
  EXPECT_THAT(activations({"ScaledTanh", "Relu", "Tanh"}),
              HasSubstr("the activation scaledtanh has no activation_alpha\n  help: it has no default"));
  EXPECT_THAT(with("layout", 2), HasSubstr("layout must be 0 or 1"));
  EXPECT_THAT(with("clip", -1), HasSubstr("clip must not be negative"));
  EXPECT_THAT(with("input_forget", 2), HasSubstr("input_forget must be in 0 .. 1, found 2"));
}

const std::string kConv = "m.onnx: Conv '/f/f.0/f.0.0/Conv': error: ";

INSTANTIATE_TEST_SUITE_P(
    All, BrokenModel,
    testing::Values(
        Broken{"operator", [](auto& m) { node_of(m, "Relu")->set_op_type("Frobnicate"); },
               "m.onnx: Frobnicate '/f/f.0/f.0.2/Relu': error: the operator Frobnicate is not supported"},
        Broken{"unknown_attribute",
               [](auto& m) {
                 auto* attr = node_of(m, "Relu")->add_attribute();
                 attr->set_name("alpha");
                 attr->set_type(::onnx::AttributeProto::FLOAT);
                 attr->set_f(0.1f);
               },
               "Relu '/f/f.0/f.0.2/Relu': error: the attribute 'alpha' is not supported"},
        Broken{"domain", [](auto& m) { node_of(m, "Relu")->set_domain("com.example"); },
               "the operator com.example.Relu is not supported"},
        Broken{"opset", [](auto& m) { m.mutable_opset_import(0)->set_version(99); },
               "opset 99 is not supported, 1 .. 27 are"},
        Broken{"redefined", [](auto& m) { m.mutable_opset_import(0)->set_version(6); },
               "Gemm of opset 6 is not supported\n  help: convert the model to opset 7 or later"},
        Broken{"no_opset", [](auto& m) { m.clear_opset_import(); }, "the model does not state its opset"},
        Broken{"no_graph", [](auto& m) { m.clear_graph(); }, "the model has no graph"},
        Broken{
            "dtype",
            [](auto& m) { m.mutable_graph()->mutable_initializer(0)->set_data_type(::onnx::TensorProto::COMPLEX64); },
            "initializer 'fc.weight' has the data type COMPLEX64, which is not supported"},
        Broken{"input_dtype",
               [](auto& m) {
                 m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(8);
               },
               "input 'input' has the data type STRING"},
        Broken{"short_data", [](auto& m) { m.mutable_graph()->mutable_initializer(2)->mutable_raw_data()->pop_back(); },
               "has 575 bytes of data, its shape (16, 1, 3, 3) needs 576"},
        Broken{"huge", [](auto& m) { m.mutable_graph()->mutable_initializer(2)->set_dims(0, int64_t{1} << 62); },
               "has an impossible size"},
        Broken{"negative", [](auto& m) { m.mutable_graph()->mutable_initializer(2)->set_dims(0, -16); },
               "has an impossible size -16"},
        Broken{"external",
               [](auto& m) {
                 m.mutable_graph()->mutable_initializer(0)->set_data_location(::onnx::TensorProto::EXTERNAL);
               },
               "is stored in an external file"},
        Broken{"dangling", [](auto& m) { node_of(m, "Conv")->set_input(0, "nothing"); },
               kConv + "input 'nothing' is not defined"},
        Broken{"cycle", [](auto& m) { node_of(m, "Conv")->set_input(0, "/f/f.4/f.4.0/Conv_output_0"); },
               kConv +
                   "input '/f/f.4/f.4.0/Conv_output_0' is an output of Conv '/f/f.4/f.4.0/Conv', which does not come "
                   "before it\n"
                   "  help: the graph has a cycle or is not sorted"},
        Broken{"output", [](auto& m) { m.mutable_graph()->mutable_output(0)->set_name("none"); },
               "output 'none' is not defined"},
        Broken{"same_name", [](auto& m) { node_of(m, "Relu")->set_output(0, "input"); },
               "output 'input' has the name of another tensor"},
        Broken{"missing_attribute", [](auto& m) { node_of(m, "MaxPool")->clear_attribute(); },
               "m.onnx: MaxPool '/f/f.1/MaxPool': error: the attribute 'kernel_shape' is missing"},
        Broken{"indices_of_windows",
               [](auto& m) {
                 for (const int axis : {2, 3}) input_dim(m, axis)->set_dim_value(1 << 14);
                 input_dim(m, 0)->set_dim_value(1);
                 node_of(m, "MaxPool")->add_output("indices");
               },
               "the indices of so many windows are not supported"},
        Broken{"attribute_kind",
               [](auto& m) { attribute_of(node_of(m, "Flatten"), "axis")->set_type(::onnx::AttributeProto::FLOAT); },
               "m.onnx: Flatten '/Flatten': error: the attribute 'axis' must be an integer"},
        Broken{"inputs", [](auto& m) { node_of(m, "Relu")->add_input("input"); }, "expected 1 .. 1 inputs, found 2"},
        Broken{"second_output", [](auto& m) { node_of(m, "Relu")->add_output("more"); },
               "the output 'more' is not supported, only the first is"},
        Broken{"channels", [](auto& m) { input_dim(m, 1)->set_dim_value(3); },
               kConv + "conv2d: w expects 1 x 1 group input channels, x has 3: x Tensor[(N, 3, 28, 28), f32], w "
                       "Tensor[(16, 1, 3, 3), f32]"},
        Broken{"unnamed_dims",
               [](auto& m) {
                 for (const int axis : {0, 2, 3}) input_dim(m, axis)->set_dim_param("?");
                 input_dim(m, 1)->set_dim_value(3);
               },
               "x Tensor[(input_0, 3, input_2, input_3), f32]"},
        Broken{"huge_result",
               [](auto& m) {
                 input_dim(m, 0)->set_dim_value(1);
                 for (const int axis : {2, 3}) input_dim(m, axis)->set_dim_value(400000000);
               },
               kConv + "conv2d: the result Tensor[(1, 16, 400000000, 400000000), f32] has more than 2^40 elements"},
        Broken{"bias_length", [](auto& m) { node_of(m, "Conv")->set_input(2, "fc.bias"); },
               "bias_add: b must be Tensor[(16,), f32], found Tensor[(10,), f32]"},
        Broken{"kernel_shape", [](auto& m) { attribute_of(node_of(m, "Conv"), "kernel_shape")->set_ints(0, 5); },
               kConv + "kernel_shape [5, 3] is not the weight's (16, 1, 3, 3)"},
        Broken{"stride", [](auto& m) { attribute_of(node_of(m, "Conv"), "strides")->set_ints(0, 0); },
               "strides must be in 1 .. 1048576, found [0, 1]"},
        Broken{"pads", [](auto& m) { attribute_of(node_of(m, "Conv"), "pads")->set_ints(3, -1); },
               "padding must be in 0"},
        Broken{"groups", [](auto& m) { attribute_of(node_of(m, "Conv"), "group")->set_i(0); }, "groups must be in 1"},
        Broken{
            "no_shape",
            [](auto& m) { m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape(); },
            "input 'input' is not a tensor with a shape"}),
    [](const auto& info) { return info.param.name; });

// Weights in a file below the model's folder are read; all that leads out of it is refused.
TEST(External, TensorsAreReadBelowTheFolderOnly) {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("tenon_external_" + std::to_string(getpid()));
  fs::create_directories(root / "model/weights");
  const auto import_from = [&](const std::string& location, const std::string& offset) -> std::string {
    ::onnx::ModelProto model = tiny();
    auto* tensor = model.mutable_graph()->mutable_initializer(0);
    const std::string bytes = "1234" + tensor->raw_data();
    EXPECT_TRUE(write_file(root / "model/weights/w.bin", std::string_view(bytes)));
    EXPECT_TRUE(write_file(root / "outside.bin", std::string_view(bytes)));
    tensor->clear_raw_data();
    tensor->set_data_location(::onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", location}, {"offset", offset}}) {
      auto* entry = tensor->add_external_data();
      entry->set_key(key), entry->set_value(value);
    }
    const std::string text = model.SerializeAsString();
    Context context;
    auto module = import_onnx(context, std::as_bytes(std::span(text)),
                              {.file = "m.onnx", .shapes = {}, .folder = root / "model"});
    auto inside = import(context, tiny());
    if (!module || !inside) return module ? "inside" : module.error().str();
    return equal(*module, *inside) ? "equal" : "different";
  };
  EXPECT_EQ(import_from("weights/w.bin", "4"), "equal");
  EXPECT_EQ(import_from("weights/w.bin", "0"), "different");
  EXPECT_THAT(import_from("weights/w.bin", "5"), HasSubstr("of 'weights/w.bin', which has"));
  EXPECT_THAT(import_from("weights/w.bin", "-1"), HasSubstr("has the offset '-1', must be a number of bytes"));
  EXPECT_THAT(import_from("../outside.bin", "4"), HasSubstr("which leads out of its folder"));
  EXPECT_THAT(import_from("weights/../../outside.bin", "4"), HasSubstr("which leads out of its folder"));
  EXPECT_THAT(import_from((root / "outside.bin").string(), "4"), HasSubstr("which is an absolute path"));
  EXPECT_THAT(import_from("none.bin", "4"), HasSubstr("'none.bin', which cannot be read"));
  EXPECT_THAT(import_from("weights", "4"), HasSubstr("which is not a regular file"));
  fs::create_symlink(root / "outside.bin", root / "model/link.bin");
  EXPECT_THAT(import_from("link.bin", "4"), HasSubstr("a link that leads out of its folder"));
  fs::remove_all(root);
}

// A Relu as a function of the model: the same module as without it.
TEST(Functions, OfTheModelAreInlined) {
  ::onnx::ModelProto model = tiny();
  auto* function = model.add_functions();
  function->set_domain("local"), function->set_name("Twice");
  function->add_input("a"), function->add_output("c");
  function->add_opset_import()->set_version(13);
  for (const auto& [from, to] : {std::pair<const char*, const char*>{"a", "b"}, {"b", "c"}}) {
    auto* node = function->add_node();
    node->set_op_type("Relu"), node->add_input(from), node->add_output(to);
  }
  auto* call = node_of(model, "Relu");
  call->set_op_type("Twice"), call->set_domain("local");
  Context context;
  auto module = import(context, model);
  ASSERT_TRUE(module) << module.error().str();
  EXPECT_TRUE(verify(context, *module));
  call->add_input("input");
  EXPECT_THAT(import(context, model).error().str(),
              HasSubstr("the function has 1 inputs and 1 outputs, its call 2 and 1"));
  call->mutable_input()->RemoveLast();
  *function->mutable_node(0) = *call;  // the function calls itself
  function->mutable_node(0)->set_input(0, "a"), function->mutable_node(0)->set_output(0, "b");
  EXPECT_THAT(import(context, model).error().str(), HasSubstr("functions call each other too deeply"));
}

// Each function calls the one before it four times.
TEST(Functions, ThatExpandWithoutEndAreRefused) {
  ::onnx::ModelProto model = tiny();
  for (int level = 0; level < 12; ++level) {
    auto* function = model.add_functions();
    function->set_domain("local"), function->set_name("F" + std::to_string(level));
    function->add_input("t0"), function->add_output("t4");
    function->add_opset_import()->set_version(13);
    for (int i = 0; i < 4; ++i) {
      auto* node = function->add_node();
      node->set_op_type(level == 0 ? "Relu" : "F" + std::to_string(level - 1));
      if (level > 0) node->set_domain("local");
      node->add_input("t" + std::to_string(i)), node->add_output("t" + std::to_string(i + 1));
    }
  }
  auto* call = node_of(model, "Relu");
  call->set_op_type("F11"), call->set_domain("local");
  Context context;
  EXPECT_THAT(import(context, model).error().str(),
              HasSubstr("the graphs and functions inside the model expand to more than 262144 nodes"));
}

TEST(Hostile, ACutModelIsExplained) {
  const auto bytes = read_model("tiny_digits.onnx");
  Context context;
  for (const size_t length : {size_t{0}, size_t{1}, size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
    auto module = import_onnx(context, std::span(bytes).first(length), {.file = "cut.onnx", .shapes = {}});
    ASSERT_FALSE(module) << length;
    EXPECT_THAT(module.error().str(), HasSubstr("cut.onnx"));
  }
}

// Bytes changed at random: a consistent module or a message, nothing else.
TEST(Hostile, ChangedBytesNeverCrash) {
  // Without most of the weights, so that changes hit what has structure.
  ::onnx::ModelProto small = tiny();
  const std::string original = small.SerializeAsString();
  uint32_t state = 7;
  auto next = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = original;
    for (uint32_t k = 0; k <= next() % 3; ++k) {
      // Two thirds of the changes hit the nodes at the start, the others anything.
      const size_t at = next() % 3 ? next() % 3000 : next() % bytes.size();
      if (next() % 4 == 0) bytes.erase(at, next() % 5);
      else bytes[at] = static_cast<char>(next() % 4 ? bytes[at] ^ (1 << next() % 8) : next());
    }
    Context context;
    auto module = import_onnx(context, std::as_bytes(std::span(bytes)), {.file = "fuzz.onnx", .shapes = {}});
    if (module) {
      const Status status = verify(context, *module);
      EXPECT_TRUE(status) << "seed 7, case " << i << ": " << status.error().str();
    } else {
      EXPECT_THAT(module.error().str(), HasSubstr("fuzz.onnx")) << "seed 7, case " << i;
    }
  }
}

// Four floats of that name, an input or output.
void port(::onnx::ValueInfoProto* value, const char* name) {
  value->set_name(name);
  auto& type = *value->mutable_type()->mutable_tensor_type();
  type.set_elem_type(1);
  type.mutable_shape()->add_dim()->set_dim_value(4);
}

// x -> QuantizeLinear -> DequantizeLinear; `zero` is a TensorProto data type, 0 for no zero point.
::onnx::ModelProto quantizing(int64_t output_dtype, int zero, int64_t dequantized = 0) {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(23);
  auto& graph = *model.mutable_graph();
  port(graph.add_input(), "x");
  port(graph.add_output(), "y");
  if (dequantized != 0) {
    graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(static_cast<int32_t>(dequantized));
  }
  auto* scale = graph.add_initializer();
  scale->set_name("scale");
  scale->set_data_type(1);
  scale->add_float_data(0.5f);
  if (zero != 0) {
    auto* tensor = graph.add_initializer();
    tensor->set_name("zero");
    tensor->set_data_type(zero);
    tensor->add_int32_data(0);
  }
  for (const bool quantize : {true, false}) {
    auto* node = graph.add_node();
    node->set_op_type(quantize ? "QuantizeLinear" : "DequantizeLinear");
    node->set_name(quantize ? "q" : "d");
    node->add_input(quantize ? "x" : "i");
    node->add_input("scale");
    if (zero != 0) node->add_input("zero");
    node->add_output(quantize ? "i" : "y");
    const int64_t type = quantize ? output_dtype : dequantized;
    if (type == 0) continue;
    auto* attr = node->add_attribute();
    attr->set_name("output_dtype");
    attr->set_type(::onnx::AttributeProto::INT);
    attr->set_i(type);
  }
  return model;
}

// As exporters write what is an output under a name of its own: x -> Tanh -> t, and Identities of both.
TEST(Outputs, OfIdentitiesKeepTheirNames) {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  port(graph.add_input(), "x");
  const auto node = [&](const char* op, const char* from, const char* to) {
    auto* one = graph.add_node();
    one->set_op_type(op), one->set_name(to);
    one->add_input(from), one->add_output(to);
    if (std::string_view(op) == "Identity") port(graph.add_output(), to);
  };
  node("Tanh", "x", "t");
  node("Identity", "t", "logits");
  node("Identity", "t", "again");
  node("Identity", "x", "input_copy");
  node("Identity", "t", "24");  // as PyTorch's exporter names a value
  node("Identity", "t", "a/b:0");
  Context context;
  auto module = import(context, model);
  ASSERT_TRUE(module) << module.error().str();
  auto simple = run_passes(context, std::move(*module), standard_passes());
  ASSERT_TRUE(simple) << simple.error().str();
  const Function& function = *simple->function(context.symbol("main"));
  std::vector<std::string> names;
  for (const Atom& field : std::get<Tuple>(function.body.bindings.back().value).fields)
    names.emplace_back(context.name(function.info(std::get<VarId>(field)).name));
  EXPECT_THAT(names, testing::ElementsAre("logits", "again", "input_copy", "24", "a/b:0"));
}

// Exporters remove axes that the data alone shows to be of size 1, as the height of features of a text line.
TEST(Squeeze, OfAnUnknownSizeIsCheckedAtRunTime) {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(11);
  auto& graph = *model.mutable_graph();
  port(graph.add_input(), "x");
  auto& shape = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.add_dim()->set_dim_param("H");
  port(graph.add_output(), "y");
  auto* node = graph.add_node();
  node->set_op_type("Squeeze"), node->add_input("x"), node->add_output("y");
  auto* axes = node->add_attribute();
  axes->set_name("axes"), axes->set_type(::onnx::AttributeProto::INTS), axes->add_ints(1);
  Context context;
  auto module = import(context, model);
  ASSERT_TRUE(module) << module.error().str();
  const auto run = [&](int64_t height) {
    return interpret(context, *module, context.symbol("main"), std::vector{runtime::Tensor(DType::kF32, {4, height})});
  };
  auto one = run(1);
  ASSERT_TRUE(one) << one.error().str();
  EXPECT_EQ(one->at(0).shape(), runtime::Shape{4});
  auto two = run(2);
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().str(), HasSubstr("Squeeze"));
  // A size that is known must be 1.
  shape.mutable_dim(1)->set_dim_value(2);
  module = import(context, model);
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().str(), HasSubstr("axis 1 of (4, 2) is not 1"));
}

TEST(OutputDtype, IsTakenWhereItSaysWhatIsMeant) {
  constexpr int kFloat = 1, kU8 = 2, kI8 = 3, kI32 = 6, kHalf = 10, kDouble = 11, kI4 = 22, kF8 = 17;
  const auto quantized_to = [](const ::onnx::ModelProto& model) -> std::string {
    Context context;
    auto module = import(context, model);
    if (!module) return module.error().str();
    const Function& function = *module->function(context.symbol("main"));
    // What the integers are converted from, or the dequantized value without integers.
    for (const Binding& binding : function.body.bindings) {
      const DType dtype = function.type(binding.var).tensor()->dtype;
      if (dtype != runtime::DType::kF32) return std::string(runtime::name(dtype));
    }
    return "f32";
  };
  EXPECT_EQ(quantized_to(quantizing(0, 0)), "u8");
  EXPECT_EQ(quantized_to(quantizing(kU8, 0)), "u8");
  EXPECT_EQ(quantized_to(quantizing(0, kI8)), "i8");
  EXPECT_EQ(quantized_to(quantizing(kI8, 0, kFloat)), "i8");
  EXPECT_EQ(quantized_to(quantizing(kI8, kI8)), "i8");
  EXPECT_EQ(quantized_to(quantizing(kI4, 0)), "i4");
  EXPECT_EQ(quantized_to(quantizing(kF8, 0)), "f8e4m3fn");
  EXPECT_THAT(quantized_to(quantizing(kI32, 0)),
              HasSubstr("'q': error: output_dtype 6 (i32) is not supported, must be"));
  EXPECT_THAT(quantized_to(quantizing(-1, 0)), HasSubstr("output_dtype -1 is not supported"));
  EXPECT_THAT(quantized_to(quantizing(kI8, kU8)), HasSubstr("output_dtype is i8, the zero point is u8"));
  EXPECT_EQ(quantized_to(quantizing(0, kU8, kHalf)), "u8");
  EXPECT_THAT(quantized_to(quantizing(0, kU8, kDouble)),
              HasSubstr("'d': error: output_dtype 11 (f64) is not supported"));
}

// What a file states about values must be what its nodes result in: LayerNormalization's mean is f32 where x is f16.
TEST(StatedTypes, ThatAreNotTheInferredOnesAreErrors) {
  const auto imported = [](int mean, int rank) -> std::string {
    ::onnx::ModelProto model;
    model.set_ir_version(10);
    model.add_opset_import()->set_version(17);
    auto& graph = *model.mutable_graph();
    const auto value = [](::onnx::ValueInfoProto* port, const char* name, int dtype, std::initializer_list<int> dims) {
      port->set_name(name);
      auto& type = *port->mutable_type()->mutable_tensor_type();
      type.set_elem_type(dtype);
      for (const int dim : dims) type.mutable_shape()->add_dim()->set_dim_value(dim);
    };
    constexpr int kHalf = 10;
    value(graph.add_input(), "x", kHalf, {2, 4});
    value(graph.add_input(), "scale", kHalf, {4});
    auto* node = graph.add_node();
    node->set_op_type("LayerNormalization"), node->set_name("n");
    node->add_input("x"), node->add_input("scale");
    node->add_output("y"), node->add_output("mean");
    graph.add_output()->set_name("y");
    if (rank == 2) value(graph.add_value_info(), "mean", mean, {2, 1});
    else value(graph.add_value_info(), "mean", mean, {2});
    Context context;
    auto module = import(context, model);
    return module ? "" : module.error().str();
  };
  EXPECT_EQ(imported(1, 2), "");
  EXPECT_THAT(imported(10, 2),
              HasSubstr("LayerNormalization 'n': error: the model states that 'mean' is Tensor[(2, 1), f16], the "
                        "node's result is Tensor[(2, 1), f32]"));
  EXPECT_THAT(imported(1, 1), HasSubstr("'mean' is Tensor[(2,), f32], the node's result is Tensor[(2, 1), f32]"));
}

// Scales and zero points that are inputs of the model.
TEST(ComputedScales, ThatCannotBeTakenAreErrors) {
  constexpr int kFloat = 1, kU8 = 2, kI8 = 3, kI32 = 6, kI64 = 7, kDouble = 11;
  struct Input {
    int dtype;
    std::vector<int64_t> dims;
  };
  const auto imported = [](const char* op, const std::vector<Input>& inputs, int64_t axis = 1) -> std::string {
    ::onnx::ModelProto model;
    model.set_ir_version(10);
    model.add_opset_import()->set_version(23);
    auto& graph = *model.mutable_graph();
    auto* node = graph.add_node();
    node->set_op_type(op), node->set_name("n"), node->add_output("y");
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto* value = graph.add_input();
      value->set_name(std::string(1, static_cast<char>('a' + i)));
      auto& type = *value->mutable_type()->mutable_tensor_type();
      type.set_elem_type(inputs[i].dtype), type.mutable_shape();
      for (const int64_t size : inputs[i].dims) type.mutable_shape()->add_dim()->set_dim_value(size);
      node->add_input(value->name());
    }
    if (std::string_view(op).ends_with("Linear")) {
      auto* attr = node->add_attribute();
      attr->set_name("axis"), attr->set_type(::onnx::AttributeProto::INT), attr->set_i(axis);
    }
    graph.add_output()->set_name("y");
    Context context;
    auto module = import(context, model);
    return module ? "" : module.error().str();
  };
  EXPECT_EQ(imported("QuantizeLinear", {{kFloat, {2, 3}}, {kFloat, {3}}, {kI8, {3}}}), "");
  EXPECT_THAT(imported("QuantizeLinear", {{kFloat, {2, 3}}, {kDouble, {}}}),
              HasSubstr("the scale must be i32 or f16 or bf16 or f32, found f64"));
  EXPECT_THAT(imported("QuantizeLinear", {{kFloat, {2, 3}}, {kFloat, {}}, {kI64, {}}}),
              HasSubstr("the zero point is i64, must be i2 or i4 or i8"));
  EXPECT_THAT(imported("QuantizeLinear", {{kFloat, {2, 3}}, {kFloat, {}}, {kI32, {}}}),
              HasSubstr("the zero point is i32, must be i2 or i4 or i8 or i16 or u2"));
  EXPECT_THAT(imported("DequantizeLinear", {{kI8, {2, 3}}, {kFloat, {3}}}, 2),
              HasSubstr("the scale is along axis 2 of 2"));
  EXPECT_THAT(imported("DequantizeLinear", {{kI8, {2}}, {kFloat, {1, 2}}}, 0),
              HasSubstr("the scale must be a scalar or a vector"));
  EXPECT_THAT(imported("MatMulInteger", {{kU8, {2, 3}}, {kI8, {3, 4}}, {kI8, {}}}),
              HasSubstr("the zero point is i8, of values in u8"));
  EXPECT_THAT(imported("ConvInteger", {{kU8, {1, 2, 3}}, {kU8, {2, 1, 3, 3}}, {kU8, {}}}),
              HasSubstr("x has 3 dims, the weight 4"));
}

}  // namespace
}  // namespace tenon::compiler
