// The C interface of the compiler, as a program in C uses it: from a model's file to results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon_compiler.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tenon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string file_name(const std::string& name) {
  return testing::TempDir() + "compiler_c_api_" + std::to_string(getpid()) + "_" + name;
}

// A text file, which is removed at the end of the test.
struct TextFile {
  std::string path;
  TextFile(const std::string& name, const std::string& text) : path(file_name(name)) {
    std::ofstream(path) << "#[version = \"1\"]\n" << text;
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile() { std::filesystem::remove(path); }
};

// The text of an error, which is freed.
std::string text_of(tenon_error* error) {
  if (!error) return "no error";
  std::string text = tenon_error_text(error);
  tenon_error_free(error);
  return text;
}

std::string text_of(tenon_text* text) {
  std::string copy = tenon_text_string(text);
  tenon_text_free(text);
  return copy;
}

template <class T, void (*Free)(T*)>
struct Freed {
  void operator()(T* object) const { Free(object); }
};
using Model = std::unique_ptr<tenon_model, Freed<tenon_model, tenon_model_free>>;
using Program = std::unique_ptr<tenon_program, Freed<tenon_program, tenon_program_free>>;
using Value = std::unique_ptr<tenon_value, Freed<tenon_value, tenon_value_free>>;
using Session = std::unique_ptr<tenon_session, Freed<tenon_session, tenon_session_free>>;
using Device = std::unique_ptr<tenon_device, Freed<tenon_device, tenon_device_free>>;

using ModelOptions = std::vector<tenon_option>;

Model import_model(const std::string& path, const ModelOptions& options) {
  tenon_model* model = nullptr;
  EXPECT_EQ(text_of(tenon_model_import(path.c_str(), options.data(), options.size(), &model)), "no error");
  return Model(model);
}

std::string import_fault(const std::string& path, const ModelOptions& options) {
  tenon_model* model = nullptr;
  std::string text = text_of(tenon_model_import(path.c_str(), options.data(), options.size(), &model));
  EXPECT_EQ(model, nullptr);
  return text;
}

Program compile(const Model& model) {
  tenon_program* program = nullptr;
  EXPECT_EQ(text_of(tenon_model_compile(model.get(), &program)), "no error");
  return Program(program);
}

Value tensor(const std::vector<int64_t>& sizes, const std::vector<float>& elements) {
  tenon_value* value = nullptr;
  EXPECT_EQ(text_of(tenon_tensor_create(TENON_F32, static_cast<uint32_t>(sizes.size()), sizes.data(), elements.data(),
                                        &value)),
            "no error");
  return Value(value);
}

std::vector<float> run(const Program& program, const Value& input, tenon_session_options options) {
  tenon_session* opened = nullptr;
  EXPECT_EQ(text_of(tenon_session_create(program.get(), &options, &opened)), "no error");
  const Session session(opened);
  const tenon_value* inputs[] = {input.get()};
  tenon_value* output = nullptr;
  EXPECT_EQ(text_of(tenon_session_run(session.get(), inputs, 1, &output, 1)), "no error");
  const Value result(output);
  const auto* data = static_cast<const float*>(tenon_tensor_data(output));
  return {data, data + tenon_tensor_bytes(output) / sizeof(float)};
}

std::vector<float> run(const Program& program, const Value& input, tenon_device* device = nullptr) {
  tenon_session_options options = TENON_SESSION_OPTIONS_INIT;
  options.device = device;
  return run(program, input, options);
}

const std::string kTwice = "def @main[n](%x: Tensor[(n, 2), f32]) { (add(%x, %x)) }\n";
// A layer that an accelerator of any configuration computes.
const std::string kDense = R"(
const $w: Tensor[(4, 4), f32] = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0.5, 0.5, 0.5, 0.5];
def @main[n](%x: Tensor[(n, 4), f32]) { dense(%x, $w) })";

TEST(CompilerInterface, CompilesSavesAndRuns) {
  const TextFile file("twice.tn", kTwice);
  const Model model = import_model(file.path, {{"cpu", nullptr}});
  ASSERT_TRUE(model);
  EXPECT_THAT(tenon_model_name(model.get()), HasSubstr("twice"));
  ASSERT_EQ(tenon_model_input_count(model.get()), 1);
  EXPECT_STREQ(tenon_model_input_name(model.get(), 0), "x");
  EXPECT_STREQ(tenon_model_input_type(model.get(), 0), "Tensor[(n, 2), f32]");
  EXPECT_EQ(tenon_model_input_type(model.get(), 1), nullptr);
  ASSERT_EQ(tenon_model_output_count(model.get()), 1);
  EXPECT_STREQ(tenon_model_output_type(model.get(), 0), "Tensor[(n, 2), f32]");

  const Program program = compile(model);
  const Value input = tensor({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(run(program, input), ElementsAre(2, 4, 6, 8));

  const std::string saved = file_name("twice.tnx");
  ASSERT_EQ(text_of(tenon_program_save(program.get(), saved.c_str())), "no error");
  tenon_program* read = nullptr;
  ASSERT_EQ(text_of(tenon_program_load(saved.c_str(), &read)), "no error");
  const Program loaded(read);
  EXPECT_THAT(run(loaded, input), ElementsAre(2, 4, 6, 8));
  tenon_text* json = nullptr;
  ASSERT_EQ(text_of(tenon_inspect(saved.c_str(), &json)), "no error");
  EXPECT_THAT(text_of(json), HasSubstr("\"inputs\""));
  std::filesystem::remove(saved);
}

// Unknown sizes are those of the samples, a row a sample, and the layer is on the accelerator.
TEST(CompilerInterface, QuantizesWithSamplesInMemory) {
  const TextFile file("dense.tn", kDense);
  const Model model = import_model(file.path, {{"config", "tiny"}});
  ASSERT_TRUE(model);
  const Value wide = tensor({1, 3}, {1, 2, 3});
  const tenon_value* wrong[] = {wide.get()};
  EXPECT_THAT(text_of(tenon_model_calibrate(model.get(), wrong, 1)), HasSubstr("(1, 3)"));
  EXPECT_STREQ(tenon_model_input_type(model.get(), 0), "Tensor[(n, 4), f32]");  // as before
  const Value samples = tensor({2, 4}, {0, 1, -1, 1, 1, -0.5, 0.25, 0.5});
  const tenon_value* data[] = {samples.get()};
  ASSERT_EQ(text_of(tenon_model_calibrate(model.get(), data, 1)), "no error");
  EXPECT_STREQ(tenon_model_input_type(model.get(), 0), "Tensor[(1, 4), f32]");
  const Program program = compile(model);
  ASSERT_STREQ(tenon_program_configuration(program.get()), "tiny");
  tenon_device* opened = nullptr;
  ASSERT_EQ(text_of(tenon_device_open("behavioral:tiny", &opened)), "no error");
  const Device device(opened);
  const std::vector<float> result = run(program, tensor({1, 4}, {0, 1, -1, 1}), device.get());
  EXPECT_THAT(result, testing::Pointwise(testing::FloatNear(0.02F), {0.0F, 1.0F, -1.0F, 0.5F}));
  tenon_text* report = nullptr;
  ASSERT_EQ(text_of(tenon_model_report(model.get(), &report)), "no error");
  EXPECT_THAT(text_of(report), HasSubstr("\"target\": \"accel\""));
}

// Each set of samples binds the sizes that the model leaves open; a report is of the last compilation alone.
TEST(CompilerInterface, SamplesOfAnotherSizeReplaceTheFirst) {
  const TextFile file("sizes.tn", "def @main[n, k](%x: Tensor[(n, k), f32]) { relu(%x) }\n");
  const Model model = import_model(file.path, {{"config", "tiny"}});
  ASSERT_TRUE(model);
  tenon_text* text = nullptr;
  for (const int64_t width : {7, 8}) {
    const Value samples = tensor({4, width}, std::vector<float>(static_cast<size_t>(4 * width), 0.5F));
    const tenon_value* data[] = {samples.get()};
    ASSERT_EQ(text_of(tenon_model_calibrate(model.get(), data, 1)), "no error");
    EXPECT_EQ(tenon_model_input_type(model.get(), 0), "Tensor[(1, " + std::to_string(width) + "), f32]");
    EXPECT_THAT(text_of(tenon_model_report(model.get(), &text)), HasSubstr("the model is not compiled"));
    ASSERT_TRUE(compile(model));
    ASSERT_EQ(text_of(tenon_model_report(model.get(), &text)), "no error");
    tenon_text_free(text);
  }
}

std::string report_of(const Model& model) {
  tenon_text* report = nullptr;
  EXPECT_EQ(text_of(tenon_model_report(model.get(), &report)), "no error");
  return text_of(report);
}

const std::string kRelu = "def @main(%x: Tensor[(4,), f32]) { relu(%x) }\n";

TEST(CompilerInterface, CompilesWithAPluginAndRunsIt) {
  const TextFile file("relu.tn", kRelu);
  const Model model = import_model(file.path, {{"cpu", nullptr}, {"plugin", TENON_RELUS}});
  ASSERT_TRUE(model);
  const Program program = compile(model);
  ASSERT_TRUE(program);
  EXPECT_THAT(report_of(model), HasSubstr("\"target\": \"relus\""));
  tenon_session_options options = TENON_SESSION_OPTIONS_INIT;
  const char* const plugins[] = {TENON_RELUS};
  options.plugins = plugins;
  options.plugin_count = 1;
  EXPECT_THAT(run(program, tensor({4}, {-1, 2, -3, 4}), options), ElementsAre(0, 2, 0, 4));
}

TEST(CompilerInterface, TellsWhatIsWrongWithAPlugin) {
  const TextFile file("relu.tn", kRelu);
  const std::string no_plugin = file_name("none.so");
  const auto compile_fault = [](const Model& model) {
    tenon_program* program = nullptr;
    std::string text = text_of(tenon_model_compile(model.get(), &program));
    EXPECT_EQ(program, nullptr);
    return text;
  };
  EXPECT_THAT(compile_fault(import_model(file.path, {{"cpu", nullptr}, {"plugin", no_plugin.c_str()}})),
              HasSubstr("none.so: error: the plugin is not used: it cannot be opened"));
  setenv("TENON_TEST_PLUGIN", "wait in accepts", 1);
  const ModelOptions slow{{"cpu", nullptr}, {"plugin", TENON_RELUS}, {"plugin-seconds", "1"}};
  EXPECT_THAT(compile_fault(import_model(file.path, slow)),
              HasSubstr("the plugin relus: accepts did not return within 1 s"));
  EXPECT_THAT(import_fault(file.path, {{"plugin-seconds", "0"}}), HasSubstr("--plugin-seconds"));
  // The compilation goes on without it, and the report says so: nothing is printed.
  for (const char* behavior : {"wait in accepts", "NULL"}) {
    setenv("TENON_TEST_PLUGIN", behavior, 1);
    ModelOptions going_on = slow;
    going_on.push_back({"fallback", "interpreter"});
    const Model model = import_model(file.path, going_on);
    const Program program = compile(model);
    EXPECT_THAT(report_of(model), HasSubstr("the model is compiled without ")) << behavior;
    EXPECT_THAT(run(program, tensor({4}, {-1, 2, -3, 4})), ElementsAre(0, 2, 0, 4));
  }
  unsetenv("TENON_TEST_PLUGIN");
}

TEST(CompilerInterface, TellsWhatIsWrongWithAModel) {
  EXPECT_THAT(import_fault(file_name("none.onnx"), {{"cpu", ""}}), HasSubstr("none.onnx"));
  const TextFile file("wrong.tn", "def @main(%x: Tensor[(2,), f32]) {\n  add(%x, %y)\n}\n");
  EXPECT_THAT(import_fault(file.path, {{"cpu", ""}}), HasSubstr("wrong.tn:3:11: error: "));
  const TextFile many("many.tn", "def @main(%x: Tensor[(2,), f32]) {\n  (%y, %z)\n}\n");
  const std::string faults = import_fault(many.path, {{"cpu", ""}});
  EXPECT_THAT(faults, HasSubstr("%y"));
  EXPECT_THAT(faults, HasSubstr("%z"));
}

TEST(CompilerInterface, ChecksOptions) {
  const TextFile file("options.tn", kTwice);
  EXPECT_THAT(import_fault(file.path, {{"confg", "tiny"}}), HasSubstr("there is no option --confg"));
  EXPECT_THAT(import_fault(file.path, {{"confg", "tiny"}}), HasSubstr("did you mean --config"));
  for (const char* name : {"--config", "help", "", "config=tiny"})
    EXPECT_THAT(import_fault(file.path, {{name, "tiny"}}), HasSubstr("which is no name of an option")) << name;
  EXPECT_THAT(import_fault(file.path, {{nullptr, nullptr}}), HasSubstr("option 0 is ''"));
  EXPECT_THAT(import_fault(file.path, {{"config", "tinny"}}), HasSubstr("tinny"));
  EXPECT_THAT(import_fault(file.path, {{"calibration", "best"}}), HasSubstr("best"));
  EXPECT_THAT(import_fault(file.path, {{"shared", "x"}}), HasSubstr("--shared is for the instances of --batch"));
}

TEST(CompilerInterface, ChecksArguments) {
  const TextFile file("arguments.tn", kTwice);
  tenon_model* none = nullptr;
  EXPECT_THAT(text_of(tenon_model_import(nullptr, nullptr, 0, &none)), HasSubstr("the argument path is NULL"));
  EXPECT_THAT(text_of(tenon_model_import("a.onnx", nullptr, 1, &none)), HasSubstr("the argument options is NULL"));
  const Model model = import_model(file.path, {{"cpu", ""}});
  ASSERT_TRUE(model);
  const Value one = tensor({1, 2}, {1, 2});
  const tenon_value* two[] = {one.get(), one.get()};
  EXPECT_THAT(text_of(tenon_model_calibrate(model.get(), two, 2)),
              HasSubstr("there are data of 2 inputs, the model has 1"));
  const tenon_value* null[] = {nullptr};
  EXPECT_THAT(text_of(tenon_model_calibrate(model.get(), null, 1)), HasSubstr("the data of input 0 is NULL"));
  tenon_value* tuple = nullptr;
  ASSERT_EQ(text_of(tenon_tuple_create(two, 2, &tuple)), "no error");
  const Value owned(tuple);
  const tenon_value* no_tensor[] = {tuple};
  EXPECT_THAT(text_of(tenon_model_calibrate(model.get(), no_tensor, 1)), HasSubstr("the data of input 0 is no tensor"));
  const Value wide = tensor({1, 3}, {1, 2, 3});
  const tenon_value* wrong[] = {wide.get()};
  EXPECT_THAT(text_of(tenon_model_calibrate(model.get(), wrong, 1)), HasSubstr("the data is f32 (1, 3)"));
  const TextFile fixed_file("fixed.tn", "def @main(%x: Tensor[(1, 2), f32]) { add(%x, %x) }\n");
  const Model fixed = import_model(fixed_file.path, {{"cpu", ""}});
  ASSERT_TRUE(fixed);
  const Value empty = tensor({0, 2}, {});
  const tenon_value* no_samples[] = {empty.get()};
  EXPECT_THAT(text_of(tenon_model_calibrate(fixed.get(), no_samples, 1)), HasSubstr("there is no sample"));
  tenon_text* text = nullptr;
  EXPECT_THAT(text_of(tenon_model_report(model.get(), &text)), HasSubstr("the model is not compiled"));
  EXPECT_THAT(text_of(tenon_inspect(file.path.c_str(), &text)), HasSubstr("not an executable"));
}

TEST(CompilerInterface, CompilesInSeveralThreads) {
  const TextFile file("threads.tn", kTwice);
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(4);
  for (std::vector<float>& result : results) {
    threads.emplace_back([&] {
      const Program program = compile(import_model(file.path, {{"cpu", ""}}));
      result = run(program, tensor({1, 2}, {1, 2}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& result : results) EXPECT_THAT(result, ElementsAre(2, 4));
}

// The text of errors that libraries of this interface make is that of the runtime's own.
TEST(CompilerInterface, ErrorsAreThoseOfTheRuntime) {
  tenon_error* error = tenon_error_create(TENON_FAULT_USAGE, "x is 3", "file", nullptr);
  EXPECT_EQ(tenon_error_fault(error), TENON_FAULT_USAGE);
  EXPECT_STREQ(tenon_error_help(error), "");
  EXPECT_EQ(text_of(error), "file: error: x is 3");
  error = tenon_error_create(17, nullptr, nullptr, "help");
  EXPECT_EQ(tenon_error_fault(error), TENON_FAULT_INTERNAL);
  EXPECT_THAT(text_of(error), StartsWith("error: "));
  tenon_program* program = nullptr;
  EXPECT_THAT(text_of(tenon_program_load_bytes("no", 2, "bytes", &program)),
              HasSubstr("bytes: error: not an executable: 2 bytes"));
}

}  // namespace
}  // namespace tenon
