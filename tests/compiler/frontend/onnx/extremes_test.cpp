// Models whose names, ranks, sizes or nesting no exporter writes: each is refused at once, with its reason.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "compiler/frontend/onnx.h"
#include "compiler/frontend/onnx/model.h"
#include "support/file.h"
#include "tests/compiler/frontend/onnx/build_model.h"

namespace tenon::compiler {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr char kHostile[] = "x\x1b]0;pwn\x07\nerror: fake";

std::string imported(const ::onnx::ModelProto& model, const fs::path& folder = {}) {
  const std::string bytes = model.SerializeAsString();
  Context context;
  const auto module =
      import_onnx(context, std::as_bytes(std::span(bytes)), {.file = "m.onnx", .shapes = {}, .folder = folder});
  return module ? "imported" : module.error().str();
}

::onnx::ModelProto relu_of(const std::vector<int64_t>& shape) {
  ::onnx::ModelProto model = test::model_of(17);
  test::set_type(*model.mutable_graph()->add_input(), "x", shape);
  test::add_node(*model.mutable_graph(), "Relu", {"x"}, {"y"});
  model.mutable_graph()->add_output()->set_name("y");
  return model;
}

TEST(Extremes, NamesControlNoTerminal) {
  std::vector<::onnx::ModelProto> models(7, relu_of({1, 4}));
  auto graph = [&](size_t i) { return models[i].mutable_graph(); };
  graph(0)->mutable_node(0)->set_op_type(kHostile);
  graph(1)->mutable_node(0)->set_domain(kHostile);
  graph(2)->mutable_node(0)->set_name(kHostile), graph(2)->mutable_node(0)->add_input("x");
  graph(3)->mutable_node(0)->set_input(0, kHostile);
  graph(4)->mutable_output(0)->set_name(kHostile);
  test::set_int(*graph(5)->mutable_node(0), kHostile, 1);
  graph(6)->mutable_input(0)->set_name(kHostile), graph(6)->mutable_input(0)->clear_type();
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string message = imported(models[i]);
    EXPECT_THAT(message, HasSubstr("x\\x1b]0;pwn\\x07\\nerror: fake")) << i;
    EXPECT_THAT(message, Not(HasSubstr("\x1b"))) << i;
    EXPECT_THAT(message, Not(HasSubstr("\nerror"))) << i;
    EXPECT_THAT(message, Not(HasSubstr("\n  error"))) << i;
  }
}

TEST(Extremes, NamesOfMegabytesMakeShortMessages) {
  const std::string name(3'000'000, 'n');
  auto model = relu_of({1, 4});
  model.mutable_graph()->mutable_node(0)->set_name(name);
  model.mutable_graph()->mutable_node(0)->set_op_type("Unknown");
  EXPECT_LT(imported(model).size(), 10'000u);
  model = relu_of({1, 4});
  model.mutable_graph()->mutable_output(0)->set_name(name);
  EXPECT_LT(imported(model).size(), 10'000u);
  EXPECT_THAT(imported(model), HasSubstr("is not defined"));
}

TEST(Extremes, NamesThatAreNotAsciiStillJoinNodes) {
  auto model = relu_of({1, 4});
  auto& graph = *model.mutable_graph();
  graph.mutable_input(0)->set_name("eing\u00e4nge\n"), graph.mutable_node(0)->set_input(0, "eing\u00e4nge\n");
  EXPECT_EQ(imported(model), "imported");
}

// A size "N.0" of the file is N_0 in the module's text; a user may write either.
TEST(Extremes, SizesHaveTheFilesNamesAndTheModules) {
  const auto with_sizes = [](const std::vector<std::string>& names) {
    auto model = relu_of({});
    for (const std::string& name : names) {
      auto& type = *model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
      type.mutable_shape()->add_dim()->set_dim_param(name);
    }
    return model.SerializeAsString();
  };
  const auto type_of = [&](const std::vector<std::string>& names, const std::map<std::string, int64_t>& shapes) {
    const std::string bytes = with_sizes(names);
    Context context;
    const auto module = import_onnx(context, std::as_bytes(std::span(bytes)), {.file = "m.onnx", .shapes = shapes});
    if (!module) return module.error().str();
    const Function& main = *module->function(context.symbol("main"));
    return context.str(main.type(main.params[0]));
  };
  EXPECT_EQ(type_of({"N.0", "3"}, {}), "Tensor[(N_0, d3), f32]");
  EXPECT_EQ(type_of({"N.0", "3"}, {{"N.0", 2}, {"3", 5}}), "Tensor[(2, 5), f32]");
  EXPECT_EQ(type_of({"N.0", "3"}, {{"N_0", 2}, {"d3", 5}}), "Tensor[(2, 5), f32]");
  EXPECT_EQ(type_of({"N.0", "N_0"}, {{"N_0", 2}}), "Tensor[(N_0, 2), f32]") << "the file's own name comes first";
  EXPECT_THAT(type_of({"N.0"}, {{"M", 2}}), HasSubstr("the model has no unknown size 'M'\n  help: it has N.0"));
}

TEST(Extremes, RanksAreLimited) {
  EXPECT_EQ(imported(relu_of(std::vector<int64_t>(32, 1))), "imported");
  EXPECT_THAT(imported(relu_of(std::vector<int64_t>(300, 1))),
              HasSubstr("input 'x' has 300 axes, at most 32 are supported"));
  auto model = relu_of({1});
  auto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w"), tensor.set_data_type(::onnx::TensorProto::FLOAT), tensor.add_float_data(1);
  for (int i = 0; i < 33; ++i) tensor.add_dims(1);
  EXPECT_THAT(imported(model), HasSubstr("initializer 'w' has 33 axes, at most 32 are supported"));
  model = relu_of({1});
  auto& axes = *model.mutable_graph()->add_initializer();
  axes.set_name("axes"), axes.set_data_type(::onnx::TensorProto::INT64), axes.add_dims(100);
  for (int i = 0; i < 100; ++i) axes.add_int64_data(i);
  test::add_node(*model.mutable_graph(), "Unsqueeze", {"y", "axes"}, {"z"});
  model.mutable_graph()->mutable_output(0)->set_name("z");
  EXPECT_THAT(imported(model), HasSubstr("at most 32 are supported"));
}

TEST(Extremes, SizesOfResultsAreLimitedWithoutOverflow) {
  constexpr int64_t kMost = int64_t{1} << 31;  // of a repetition; the product of the first two and 4 is 0 in 64 bits
  for (const std::vector<int64_t>& repeats : {std::vector{kMost, kMost}, {int64_t{1} << 21, int64_t{1} << 21}}) {
    auto model = relu_of({1, 4});
    auto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name("s"), tensor.set_data_type(::onnx::TensorProto::INT64), tensor.add_dims(2);
    for (const int64_t repeat : repeats) tensor.add_int64_data(repeat);
    test::add_node(*model.mutable_graph(), "Tile", {"y", "s"}, {"z"});
    model.mutable_graph()->mutable_output(0)->set_name("z");
    const std::string message = imported(model);
    EXPECT_THAT(message, HasSubstr("m.onnx: Tile 'Tile_of_z'"));
    EXPECT_THAT(message, HasSubstr("has more than 2^40 elements")) << repeats[0];
  }
}

TEST(Extremes, ExternalDataIsSummedBeforeItIsRead) {
  const fs::path folder = fs::temp_directory_path() / ("tenon_sparse_" + std::to_string(getpid()));
  fs::create_directory(folder);
  std::ofstream(folder / "sparse.bin").close();
  std::error_code failure;
  fs::resize_file(folder / "sparse.bin", uintmax_t{1} << 42, failure);
  if (failure) GTEST_SKIP() << "the folder admits no sparse files: " << failure.message();
  const auto add_external = [&](::onnx::TensorProto& tensor, const std::string& name, int64_t bytes) {
    tensor.set_name(name), tensor.set_data_type(::onnx::TensorProto::INT8), tensor.add_dims(bytes);
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    auto& entry = *tensor.add_external_data();
    entry.set_key("location"), entry.set_value("sparse.bin");
  };
  auto one = relu_of({1}), many = relu_of({1}), attribute = relu_of({1});
  add_external(*one.mutable_graph()->add_initializer(), "w", int64_t{1} << 40);
  for (int i = 0; i < 4096; ++i)
    add_external(*many.mutable_graph()->add_initializer(), "w" + std::to_string(i), int64_t{1} << 28);
  auto& constant = test::add_node(*attribute.mutable_graph(), "Constant", {}, {"c"});
  add_external(*test::add_attribute(constant, "value", ::onnx::AttributeProto::TENSOR).mutable_t(), "c",
               int64_t{1} << 40);
  for (const auto& model : {one, many, attribute}) {
    EXPECT_THAT(imported(model, folder), HasSubstr("what the model has in external files takes "));
  }
  fs::remove_all(folder);
}

// An If in an If in an If.
TEST(Extremes, NestedGraphsAreNoCorruption) {
  const auto nested = [](int depth) {
    auto model = relu_of({1});
    auto& input = *model.mutable_graph()->add_input();
    test::set_type(input, "c", {}, ::onnx::TensorProto::BOOL);
    auto* graph = model.mutable_graph();
    for (int i = 0; i < depth; ++i) {
      auto& node = test::add_node(*graph, "If", {"c"}, {"r" + std::to_string(i)});
      auto& otherwise = test::set_graph(node, "else_branch");
      test::add_node(otherwise, "Relu", {"x"}, {"e" + std::to_string(i)});
      otherwise.add_output()->set_name("e" + std::to_string(i));
      graph = &test::set_graph(node, "then_branch");
      graph->add_output()->set_name(i + 1 < depth ? "r" + std::to_string(i + 1) : "last");
    }
    test::add_node(*graph, "Relu", {"x"}, {"last"});
    model.mutable_graph()->mutable_output(0)->set_name("r0");
    return model;
  };
  EXPECT_EQ(imported(nested(3)), "imported");
  EXPECT_THAT(imported(nested(90)), HasSubstr("graphs are nested too deeply"));
}

}  // namespace
}  // namespace tenon::compiler
