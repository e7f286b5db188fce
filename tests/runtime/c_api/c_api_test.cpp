// The C interface, and its C++ wrapper, on executables that were files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon.h>

#include <tenon.hpp>

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "runtime/dlpack.h"
#include "runtime/temporary.h"
#include "runtime/train/trainer.h"
#include "support/file.h"
#include "tests/runtime/sample.h"

namespace tenon {
namespace {

using api::Value;
using testing::ElementsAre;
using testing::HasSubstr;

std::string file_name(const char* name) {
  return testing::TempDir() + "c_api_" + std::to_string(getpid()) + "_" + name + ".tnx";
}

// The file of an executable, which is removed at the end of the test.
struct File {
  std::string path;
  explicit File(const runtime::Executable& executable, const char* name) : path(file_name(name)) {
    EXPECT_TRUE(runtime::save(executable, path));
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { std::filesystem::remove(path); }
};

runtime::Executable compiled(const std::string& text) {
  compiler::Context context;
  const auto module = compiler::parse(context, "#[version = \"1\"]\n" + text);
  EXPECT_TRUE(module) << module.error().str();
  auto executable = compiler::lower(context, *module, context.symbol("main"), {},
                                    {.name = "test", .facts = {}, .cpu = {.native = false}});
  EXPECT_TRUE(executable) << executable.error().str();
  return std::move(*executable);
}

const std::string kAdd = R"(def @main[n](%x: Tensor[(n, 2), f32], %y: Tensor[(n, 2), f32]) { add(%x, %y) })";
const std::string kCount = R"(
def @count(%n: Tensor[(), i64]) -> Tensor[(), i64] { if (greater(%n, 0i64)) { @count(subtract(%n, 1i64)) } else { %n } }
def @main(%n: Tensor[(), i64]) { @count(%n) })";
const std::string kReverse = R"(
type List[A] { Nil, Cons(A, List[A]) }
def @onto[A](%xs: List[A], %ys: List[A]) -> List[A] {
  match (%xs) { Nil => %ys, Cons(%x, %rest) => @onto(%rest, Cons(%x, %ys)) }
}
def @main(%xs: List[Tensor[(), f32]]) { (@onto(%xs, Nil), 1i64) })";

// A step of training: x . w is fitted to the labels by its gradient, (x . w - labels) x.
const std::string kStep = R"(
def @main(%w: Tensor[(2,), f32], %rate: Tensor[(), f32], %step: Tensor[(), f32], %x: Tensor[(4, 2), f32],
          %labels: Tensor[(4,), f32]) {
  let %r = sum(%x * %w, axes=[1]) - %labels;
  (sum(%r * %r), %w - %rate * sum(%x * expand_dims(%r, axes=[1]), axes=[0]))
})";

runtime::Executable step_of_training() {
  runtime::Executable step = compiled(kStep);
  step.functions[step.entry].params[0].name = "weight.w";
  const std::vector<float> zeros{0, 0};
  const Status status = runtime::add_states(step, {{"w", runtime::Tensor::of<float>({2}, zeros)}});
  EXPECT_TRUE(status) << status.error().str();
  return step;
}

// The text of an error, which is freed.
std::string text_of(tenon_error* error) {
  if (!error) return "no error";
  std::string text = tenon_error_text(error);
  tenon_error_free(error);
  return text;
}

template <class Call>
std::string thrown(Call&& call) {
  try {
    call();
  } catch (const api::Error& e) {
    return e.what();
  }
  return "nothing thrown";
}

TEST(CApi, RunsAModelOfAnySizeAndDescribesItsInputs) {
  const File file(compiled(kAdd), "add");
  const api::Program program(file.path);
  EXPECT_EQ(program.configuration(), "");
  ASSERT_EQ(program.inputs().size(), 2);
  EXPECT_EQ(program.inputs()[0].name, "x");
  EXPECT_EQ(program.inputs()[0].type, "f32 (n, 2)");
  EXPECT_TRUE(program.inputs()[0].is_tensor);
  EXPECT_EQ(program.inputs()[0].dtype, TENON_F32);
  EXPECT_THAT(program.inputs()[0].sizes, ElementsAre(-1, 2));
  EXPECT_EQ(program.outputs().size(), 1);
  const api::Session session(program);
  for (int64_t n = 0; n < 5; ++n) {
    const std::vector<float> ones(static_cast<size_t>(2 * n), 1.0f);
    const auto sum = session.run({Value::tensor<float>({n, 2}, ones), Value::tensor<float>({n, 2}, ones)});
    ASSERT_EQ(sum.size(), 1);
    EXPECT_THAT(sum[0].sizes(), ElementsAre(n, 2));
    EXPECT_EQ(sum[0].elements<float>(), std::vector<float>(ones.size(), 2.0f));
  }
}

TEST(CApi, ObjectsMayBeFreedInAnyOrder) {
  const File file(compiled(kAdd), "order");
  tenon_program* program = nullptr;
  ASSERT_EQ(text_of(tenon_program_load(file.path.c_str(), &program)), "no error");
  tenon_session* session = nullptr;
  ASSERT_EQ(text_of(tenon_session_create(program, nullptr, &session)), "no error");
  tenon_program_free(program);
  const Value x = Value::tensor<float>({1, 2}, {1, 2});
  const tenon_value* inputs[] = {x.get(), x.get()};
  tenon_value* output = nullptr;
  ASSERT_EQ(text_of(tenon_session_run(session, inputs, 2, &output, 1)), "no error");
  tenon_session_free(session);
  EXPECT_THAT(Value(output).elements<float>(), ElementsAre(2, 4));
  tenon_program_free(nullptr);
  tenon_session_free(nullptr);
  tenon_device_free(nullptr);
  tenon_value_free(nullptr);
  tenon_error_free(nullptr);
}

TEST(CApi, ListsOfTheModelsOwnTypeGoInAndOut) {
  const File file(compiled(kReverse), "reverse");
  const api::Program program(file.path);
  EXPECT_FALSE(program.inputs()[0].is_tensor);
  EXPECT_EQ(program.inputs()[0].type, "List[Tensor[(), f32]]");
  Value list = Value::data(program, "Nil");
  for (const float x : {3.0f, 2.0f, 1.0f}) list = Value::data(program, "Cons", {Value::tensor<float>({}, {x}), list});
  const auto results = api::Session(program).run({list});
  ASSERT_EQ(results.size(), 2);
  EXPECT_THAT(results[1].elements<int64_t>(), ElementsAre(1));
  std::vector<float> found;
  for (Value at = results[0]; at.constructor(program) == "Cons"; at = at.fields()[1]) {
    found.push_back(at.fields()[0].elements<float>()[0]);
  }
  EXPECT_THAT(found, ElementsAre(3, 2, 1));
}

// One instance has sizes that do not fit; the others have their results.
TEST(CApi, AnInstanceThatFailsHasItsOwnError) {
  const File file(compiled(kAdd), "many");
  const api::Program program(file.path);
  const api::Session session(program);
  const auto rows = [](std::vector<float> x) {
    return Value::tensor<float>({static_cast<int64_t>(x.size()) / 2, 2}, std::move(x));
  };
  const auto results = session.run_many(
      {{rows({1, 2}), rows({3, 4})}, {rows({1, 2}), rows({1, 2, 3, 4})}, {rows({5, 6, 7, 8}), rows({1, 1, 1, 1})}});
  ASSERT_EQ(results.size(), 3);
  EXPECT_FALSE(results[0].error);
  EXPECT_THAT(results[0].outputs.at(0).elements<float>(), ElementsAre(4, 6));
  ASSERT_TRUE(results[1].error);
  EXPECT_EQ(results[1].error->what(), thrown([&] { session.run({rows({1, 2}), rows({1, 2, 3, 4})}); }));
  EXPECT_TRUE(results[1].outputs.empty());
  EXPECT_THAT(results[2].outputs.at(0).elements<float>(), ElementsAre(6, 7, 8, 9));
  EXPECT_TRUE(session.run_many({}).empty());
  // Errors of the call itself.
  const Value x = rows({1, 2});
  const tenon_value* inputs[] = {x.get(), x.get(), x.get(), nullptr};
  tenon_value* outputs[2] = {};
  tenon_error* errors[2] = {};
  EXPECT_THAT(text_of(tenon_session_run_many(session.get(), 2, inputs, 2, outputs, 1, errors)),
              HasSubstr("input 1 of instance 1 is NULL"));
  EXPECT_THAT(text_of(tenon_session_run_many(session.get(), 2, inputs, 2, outputs, 3, errors)),
              HasSubstr("there is space for 3 outputs, the program has 1"));
  EXPECT_THAT(text_of(tenon_session_run_many(session.get(), 2, inputs, 2, outputs, 1, nullptr)),
              HasSubstr("tenon_session_run_many: error: the argument errors is NULL"));
  EXPECT_EQ(outputs[0], nullptr);
  EXPECT_EQ(errors[0], nullptr);
}

// Sentences of different lengths, as rows that follow one another.
TEST(CApi, InstancesOfDifferentLengthsArePackedRows) {
  const File file(compiled(kAdd), "packed");
  const api::Session session{api::Program(file.path)};
  const Value x = Value::tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6}),
              y = Value::tensor<float>({3, 2}, {1, 1, 1, 1, 1, 1});
  const auto run = [&](const std::vector<Value>& xs, const std::vector<Value>& ys) {
    std::vector<std::vector<Value>> instances;
    for (size_t i = 0; i < xs.size(); ++i) instances.push_back({xs[i], ys[i]});
    return session.run_many(instances);
  };
  const auto results = run(x.unpack({1, 0, 2}), y.unpack_offsets({0, 1, 1, 3}));
  ASSERT_EQ(results.size(), 3);
  EXPECT_THAT(results[0].outputs.at(0).elements<float>(), ElementsAre(2, 3));
  EXPECT_THAT(results[1].outputs.at(0).sizes(), ElementsAre(0, 2));
  EXPECT_THAT(results[2].outputs.at(0).elements<float>(), ElementsAre(4, 5, 6, 7));
  std::vector<Value> sums;
  for (const auto& result : results) sums.push_back(result.outputs.at(0));
  EXPECT_THAT(Value::pack(sums).elements<float>(), ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_TRUE(run(Value::tensor<float>({0, 2}, {}).unpack({}), {}).empty());
  const auto parts = Value::tensor<float>({1, 2, 2}, {1, 2, 3, 4}).unpack({0, 2}, 1);
  EXPECT_THAT(parts.at(0).sizes(), ElementsAre(1, 0, 2));
  EXPECT_THAT(parts.at(1).elements<float>(), ElementsAre(1, 2, 3, 4));
  // Operands of different lengths are an error of their instance, before any kernel runs.
  const auto different = run(x.unpack({1, 2}), y.unpack({2, 1}));
  for (const auto& result : different) ASSERT_TRUE(result.error);
  EXPECT_EQ(different[1].error->finding(),
            "axis 0 of input 'x' has 2 elements, axis 0 of input 'y' has 1: both must have the size n");
}

TEST(CApi, PackedRowsThatDoNotFitTheirLengthsAreErrors) {
  const Value x = Value::tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Value pair = Value::tuple({x, x});
  EXPECT_THAT(thrown([&] {
                (void)x.unpack({2, -1});
              }),
              HasSubstr("tenon_tensor_unpack: error: lengths[1] is -1, must be from 0 to 1, the rows that are left"));
  EXPECT_THAT(thrown([&] { (void)x.unpack({2}); }), HasSubstr("the sum of lengths is 2, there are 3 rows\n  help: "));
  EXPECT_THAT(thrown([&] { (void)x.unpack({3}, 2); }), HasSubstr("the rows are along axis 2, the tensor is a (3, 2)"));
  EXPECT_THAT(
      thrown([&] {
        (void)x.unpack_offsets({0, 2, 1});
      }),
      HasSubstr("tenon_tensor_unpack_offsets: error: offsets[2] is 1, must be 2 or more, as the one before it"));
  EXPECT_THAT(
      thrown([&] {
        (void)x.unpack_offsets({0, 2});
      }),
      HasSubstr("tenon_tensor_unpack_offsets: error: offsets[1] is 2, must be 3, the number of rows\n  help: "));
  const Value many = Value::tensor(TENON_F32, {(int64_t{1} << 31) + 1, 0});
  EXPECT_THAT(thrown([&] { (void)many.unpack({1}); }), HasSubstr("there are 2147483649 rows, must be 2^31 at most"));
  EXPECT_THAT(thrown([&] { (void)pair.unpack({1}); }), HasSubstr("the value is not a tensor"));
  EXPECT_THAT(thrown([&] {
                (void)Value::pack({x, pair});
              }),
              HasSubstr("tenon_tensor_pack: error: part 1 of 2 is not a tensor"));
  EXPECT_THAT(thrown([&] {
                (void)Value::pack({x, Value::tensor<float>({1}, {1})});
              }),
              HasSubstr("tensor 1 is f32 (1,), tensor 0 f32 (3, 2): only axis 0 may differ"));
  // Nothing is written.
  const int64_t lengths[] = {4};
  tenon_value* part = nullptr;
  EXPECT_THAT(text_of(tenon_tensor_unpack(x.get(), 0, lengths, 1, &part)), HasSubstr("must be from 0 to 3"));
  EXPECT_EQ(part, nullptr);
  EXPECT_THAT(text_of(tenon_tensor_unpack(x.get(), 0, nullptr, 1, &part)), HasSubstr("the argument lengths is NULL"));
  EXPECT_THAT(text_of(tenon_tensor_unpack(x.get(), 0, lengths, 1, nullptr)), HasSubstr("the argument parts is NULL"));
  EXPECT_THAT(text_of(tenon_tensor_unpack_offsets(x.get(), 0, nullptr, 0, &part)),
              HasSubstr("the argument offsets is NULL"));
  const tenon_value* const none[] = {x.get(), nullptr};
  EXPECT_THAT(text_of(tenon_tensor_pack(none, 2, 0, &part)), HasSubstr("part 1 of 2 is NULL"));
  EXPECT_THAT(text_of(tenon_tensor_pack(none, 0, 0, &part)),
              HasSubstr("no tensors were given: the shape of the result is unknown\n  help: give at least one tensor"));
  EXPECT_EQ(part, nullptr);
}

TEST(CApi, AnAcceleratorIsAUri) {
  // The sample without the call of a test kernel.
  runtime::Executable sample = runtime::sample::executable();
  sample.functions[0].code[5].operation = runtime::Move{4, 3};
  const File file(sample, "accelerator");
  const api::Program program(file.path);
  EXPECT_EQ(program.configuration(), "default");
  EXPECT_THAT(thrown([&] { api::Session session(program); }), HasSubstr("no device was given"));
  std::optional<api::Device> device;
  device.emplace("behavioral:default");
  tenon_session_options options = TENON_SESSION_OPTIONS_INIT;
  options.device = device->get();
  const api::Session session(program, options);
  device.reset();
  std::vector<int8_t> x(runtime::sample::kRows * 16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int8_t>(37 * i);
  const uint8_t pick = 1;
  const auto results =
      session.run({Value::tensor<int8_t>({runtime::sample::kRows, 16}, x), Value::tensor(TENON_BOOL, {}, &pick)});
  EXPECT_EQ(results.at(0).elements<int8_t>(), runtime::sample::expected(x));
  EXPECT_THAT(thrown([] { api::Device unknown("fpga:0"); }), HasSubstr("fpga"));
}

TEST(CApi, AProgramOfTwoConfigurationsHasTwoDevices) {
  const File file(runtime::sample::on_two_accelerators(), "two_accelerators");
  const api::Program program(file.path);
  EXPECT_EQ(program.configuration(), "default");
  EXPECT_THAT(program.configurations(), ElementsAre("default", "deep"));
  EXPECT_EQ(tenon_program_configuration_at(program.get(), 2), nullptr);
  const std::string config = file_name("deep") + ".json";
  ASSERT_TRUE(write_file(config, spec::to_json(runtime::sample::deep_config())));
  std::optional<api::Device> first("behavioral:default"), second("behavioral:" + config);
  std::filesystem::remove(config);
  tenon_device* const devices[] = {second->get(), first->get(), nullptr};
  tenon_session_options options = TENON_SESSION_OPTIONS_INIT;
  options.devices = devices;
  options.device_count = 2;
  const api::Session session(program, options);
  const auto message = [&](tenon_device* device, tenon_device* const* several, size_t count) {
    options.device = device, options.devices = several, options.device_count = count;
    return thrown([&] { api::Session other(program, options); });
  };
  EXPECT_THAT(message(first->get(), devices, 2), HasSubstr("device and devices are both given"));
  EXPECT_THAT(message(nullptr, nullptr, 2), HasSubstr("devices is NULL, and device_count is 2"));
  EXPECT_THAT(message(nullptr, devices, 3), HasSubstr("devices[2] is NULL"));
  EXPECT_THAT(message(first->get(), nullptr, 0),
              HasSubstr("is for configuration 'deep', and no device of it was given"));
  first.reset(), second.reset();
  std::vector<int8_t> x(runtime::sample::kRows * 16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int8_t>(37 * i);
  const auto results = session.run({Value::tensor<int8_t>({runtime::sample::kRows, 16}, x)});
  EXPECT_EQ(results.at(0).elements<int8_t>(), runtime::sample::expected(runtime::sample::expected(x)));
}

TEST(CApi, SessionsNameTheFilesOfCodeThatProgramsCall) {
  const File file(runtime::sample::on_two_accelerators(), "files");
  const api::Program program(file.path);
  const char* const files[] = {"nowhere.so", nullptr};
  const auto message = [&](const char* const* plugins, size_t plugin_count, const char* const* libraries,
                           size_t library_count) {
    tenon_session_options options = TENON_SESSION_OPTIONS_INIT;
    options.plugins = plugins, options.plugin_count = plugin_count;
    options.libraries = libraries, options.library_count = library_count;
    return thrown([&] { api::Session session(program, options); });
  };
  EXPECT_THAT(message(nullptr, 1, nullptr, 0), HasSubstr("plugins is NULL, and plugin_count is 1"));
  EXPECT_THAT(message(files, 1, nullptr, 0), HasSubstr("nowhere.so: error: the file does not exist"));
  EXPECT_THAT(message(files + 1, 1, nullptr, 0), HasSubstr("plugins[0] is NULL"));
  EXPECT_THAT(message(nullptr, 0, nullptr, 1), HasSubstr("libraries is NULL, and library_count is 1"));
  EXPECT_THAT(message(nullptr, 0, files, 1), HasSubstr("nowhere.so: error: the library cannot be opened"));
  EXPECT_THAT(message(nullptr, 0, files + 1, 1), HasSubstr("libraries[0] is NULL"));
}

TEST(CApi, ARefusedSessionBindsNoNameToAFile) {
  const File file(compiled(kAdd), "refused");
  const api::Program program(file.path);
  runtime::TemporaryDirectory first, second;
  const auto message = [&](const runtime::TemporaryDirectory& folder, uint64_t max_wait_us) {
    const std::string plugin = folder.path() + "/refused.so";
    EXPECT_TRUE(write_file(plugin, "no shared object"));  // nothing calls its kernels
    const char* const plugins[] = {plugin.c_str()};
    tenon_session_options options = TENON_SESSION_OPTIONS_INIT;
    options.plugins = plugins, options.plugin_count = 1, options.max_wait_us = max_wait_us;
    return thrown([&] { api::Session session(program, options); });
  };
  EXPECT_THAT(message(first, UINT64_MAX), HasSubstr("max_wait_us is "));
  EXPECT_EQ(message(second, 0), "nothing thrown");
  EXPECT_THAT(message(first, 0), HasSubstr("is a library of kernels 'refused' too"));
}

TEST(CApi, StepsTrainTheWeights) {
  const File file(step_of_training(), "step");
  const api::Program program(file.path);
  api::Trainer trainer(program);
  EXPECT_EQ(trainer.batch(), 4);
  EXPECT_THAT(trainer.weight_names(), ElementsAre("w"));
  const std::vector<float> x{1, 0, 0, 1, 1, 1, 2, -1};  // the labels are those of w = (2, -3)
  const api::Samples one{{Value::tensor<float>({4, 2}, x)}, Value::tensor<float>({4}, {2, -3, -1, 7})};
  EXPECT_EQ(trainer.loss(one, 0), 4 + 9 + 1 + 49);
  EXPECT_EQ(trainer.step(one, 0, 0.125), 63);
  EXPECT_THAT(trainer.weight("w").elements<float>(), ElementsAre(0.125f * (2 - 1 + 14), 0.125f * (-3 - 1 - 7)));
  for (int i = 0; i < 60; ++i) trainer.step(one, 0, 0.125);
  EXPECT_LT(trainer.loss(one, 0), 1e-6);
  EXPECT_EQ(trainer.steps(), 61);
  // A second trainer goes on from the file of the first.
  const std::string state = file_name("state") + ".npz";
  trainer.save(state);
  api::Trainer second(program);
  second.load(state);
  std::filesystem::remove(state);
  EXPECT_EQ(second.steps(), 61);
  EXPECT_EQ(second.weight("w").elements<float>(), trainer.weight("w").elements<float>());
  second.set_weight("w", Value::tensor<float>({2}, {0, 0}));
  EXPECT_EQ(second.loss(one, 0), 63);
  // Two batches in one epoch.
  std::vector<float> twice = x;
  twice.insert(twice.end(), x.begin(), x.end());
  const api::Samples two{{Value::tensor<float>({8, 2}, twice)},
                         Value::tensor<float>({8}, {2, -3, -1, 7, 2, -3, -1, 7})};
  EXPECT_GT(second.epoch(two, 1, 0, 0.01), 0);
  EXPECT_EQ(second.steps(), 63);
}

TEST(CApi, WrongTrainingSaysWhy) {
  const File file(step_of_training(), "wrong_step");
  const api::Program program(file.path);
  api::Trainer trainer(program);
  const Value x = Value::tensor<float>({4, 2}, std::vector<float>(8, 1)),
              labels = Value::tensor<float>({4}, {1, 1, 1, 1});
  EXPECT_THAT(thrown([&] {
                trainer.step({{x}, labels}, 1, 0.1);
              }),
              HasSubstr("tenon_trainer_step: error: there are 4 samples, and a batch begins with sample 1 and has 4"));
  EXPECT_THAT(thrown([&] { trainer.step({{}, labels}, 0, 0.1); }), HasSubstr("the model has 1 inputs, the data 0"));
  EXPECT_THAT(thrown([&] { trainer.step({{x}, x}, 0, 0.1); }), HasSubstr("the data of 'labels' is f32 (4, 2)"));
  EXPECT_THAT(thrown([&] {
                trainer.step({{x}, labels}, 0, 1e38);
                trainer.step({{x}, labels}, 0, 1e38);
              }),
              HasSubstr("the loss of step"));
  EXPECT_THAT(thrown([&] { trainer.step({{x}, labels}, 0, -1); }), HasSubstr("the learning rate is -1"));
  EXPECT_THAT(thrown([&] { trainer.weight("v"); }),
              HasSubstr("tenon_trainer_weight: error: the step has no weight 'v'"));
  EXPECT_THAT(thrown([&] { trainer.set_weight("v", labels); }), HasSubstr("the step has no weight 'v'"));
  EXPECT_THAT(thrown([&] { trainer.set_weight("w", labels); }),
              HasSubstr("the weight 'w' is f32 (4,), the model needs"));
  EXPECT_THAT(thrown([&] { trainer.load("/nonexistent/state.npz"); }), HasSubstr("/nonexistent/state.npz"));
  const File other(compiled(kAdd), "no_step");
  const api::Program add(other.path);
  EXPECT_THAT(thrown([&] { api::Trainer no_step(add); }), HasSubstr("no run of it updates a tensor"));
  EXPECT_THAT(text_of(tenon_trainer_create(nullptr, nullptr, nullptr)), HasSubstr("step is NULL"));
  double loss = 0;
  const tenon_value* inputs[] = {nullptr};
  EXPECT_THAT(text_of(tenon_trainer_loss(trainer.get(), inputs, 1, labels.get(), 0, &loss)),
              HasSubstr("tenon_trainer_loss: error: input 0 is NULL"));
  EXPECT_THAT(text_of(tenon_trainer_loss(trainer.get(), inputs, 1, labels.get(), 0, nullptr)),
              HasSubstr("loss is NULL"));
  EXPECT_THAT(text_of(tenon_trainer_save(trainer.get(), nullptr)), HasSubstr("path is NULL"));
}

TEST(CApi, WrongCallsAreErrorsThatNameFunctionAndArgument) {
  tenon_program* program = nullptr;
  tenon_value* value = nullptr;
  EXPECT_EQ(text_of(tenon_program_load(nullptr, &program)),
            "tenon_program_load: error: the argument path is NULL\n  help: see its declaration");
  EXPECT_THAT(text_of(tenon_program_load("/nonexistent.tnx", &program)), HasSubstr("/nonexistent.tnx"));
  const int64_t negative = -1, huge = int64_t{1} << 60;
  EXPECT_THAT(text_of(tenon_tensor_create(TENON_F32, 1, &negative, nullptr, &value)), HasSubstr("the shape is (-1,)"));
  EXPECT_THAT(text_of(tenon_tensor_create(TENON_F32, 1, &huge, nullptr, &value)), HasSubstr("less than 2^48 bytes"));
  EXPECT_THAT(text_of(tenon_tensor_create(TENON_F32, 33, &huge, nullptr, &value)), HasSubstr("the rank is 33"));
  EXPECT_THAT(text_of(tenon_tensor_create(TENON_F32, 1, nullptr, nullptr, &value)), HasSubstr("sizes is NULL"));
  EXPECT_THAT(text_of(tenon_tensor_create(static_cast<tenon_dtype>(200), 0, nullptr, nullptr, &value)),
              HasSubstr("the dtype is 200"));
  EXPECT_THAT(text_of(tenon_device_open(nullptr, nullptr)), HasSubstr("uri is NULL"));
  EXPECT_THAT(text_of(tenon_session_create(nullptr, nullptr, nullptr)), HasSubstr("program is NULL"));
  EXPECT_THAT(text_of(tenon_session_cancel(nullptr, 1)), HasSubstr("session is NULL"));
  EXPECT_THAT(text_of(tenon_session_run(nullptr, nullptr, 0, nullptr, 0)), HasSubstr("session is NULL"));
  EXPECT_THAT(text_of(tenon_value_field(nullptr, 0, &value)), HasSubstr("value is NULL"));
  EXPECT_THAT(text_of(tenon_tuple_create(nullptr, 1, &value)), HasSubstr("field 0 of 1 is NULL"));
  EXPECT_THAT(text_of(tenon_tensor_from_dlpack(nullptr, &value)), HasSubstr("tensor is NULL"));
  EXPECT_EQ(program, nullptr);
  EXPECT_EQ(value, nullptr);

  const File file(compiled(kReverse), "wrong");
  const api::Program reverse(file.path);
  const Value x = Value::tensor<float>({1}, {1});
  EXPECT_THAT(thrown([&] { Value::data(reverse, "Snoc"); }), HasSubstr("test has no constructor Snoc"));
  EXPECT_THAT(thrown([&] { Value::data(reverse, "Cons", {x}); }), HasSubstr("1 fields were given, Cons has 2"));
  EXPECT_EQ(tenon_value_constructor(reverse.get(), x.get()), nullptr);
  EXPECT_EQ(tenon_program_input(reverse.get(), 1), nullptr);
  EXPECT_THAT(text_of(tenon_value_field(x.get(), 0, &value)), HasSubstr("the index is 0, the value has 0 fields"));
  const api::Session session(reverse);
  EXPECT_THAT(thrown([&] { session.run({}); }), HasSubstr("0 inputs were given"));
  EXPECT_THAT(thrown([&] { session.run({x}); }), HasSubstr("input 'xs'"));
  DLManagedTensor* exported = nullptr;
  const Value nil = Value::data(reverse, "Nil");
  EXPECT_THAT(text_of(tenon_tensor_to_dlpack(nil.get(), &exported)), HasSubstr("not a tensor"));
  EXPECT_EQ(tenon_tensor_sizes(nil.get()), nullptr);
  EXPECT_EQ(tenon_tensor_bytes(nil.get()), 0);
}

TEST(CApi, OptionsOfAnotherVersionWorkOrSayWhyNot) {
  const File file(compiled(kAdd), "version");
  const api::Program program(file.path);
  struct {
    tenon_session_options known = TENON_SESSION_OPTIONS_INIT;
    uint64_t later = 0;
  } newer;
  newer.known.size = sizeof newer;
  tenon_session* session = nullptr;
  EXPECT_EQ(text_of(tenon_session_create(program.get(), &newer.known, &session)), "no error");
  tenon_session_free(session);
  newer.later = 1;
  EXPECT_THAT(text_of(tenon_session_create(program.get(), &newer.known, &session)), HasSubstr("does not know"));
  tenon_session_options older = TENON_SESSION_OPTIONS_INIT;
  older.size = offsetof(tenon_session_options, threads);
  older.max_steps = 1;  // beyond the size, so not read
  EXPECT_EQ(text_of(tenon_session_create(program.get(), &older, &session)), "no error");
  tenon_session_free(session);
  tenon_session_options none{};
  EXPECT_THAT(text_of(tenon_session_create(program.get(), &none, &session)), HasSubstr("TENON_SESSION_OPTIONS_INIT"));
  tenon_session_options negative = TENON_SESSION_OPTIONS_INIT;
  negative.max_seconds = -1;
  EXPECT_THAT(text_of(tenon_session_create(program.get(), &negative, &session)), HasSubstr("max_seconds is -1"));
}

TEST(CApi, LimitsAndCancellationEndARun) {
  const File file(compiled(kCount), "limits");
  const api::Program program(file.path);
  const auto steps = [](int64_t n) { return std::vector{Value::tensor<int64_t>({}, {n})}; };
  tenon_session_options options = TENON_SESSION_OPTIONS_INIT;
  options.max_steps = 1000;
  const api::Session limited(program, options);
  EXPECT_NE(thrown([&] { limited.run(steps(1'000'000)); }), "nothing thrown");
  EXPECT_THAT(limited.run(steps(10))[0].elements<int64_t>(), ElementsAre(0));
  const api::Session session(program);
  std::atomic<bool> done = false;
  std::string said;
  std::thread runner([&] {
    said = thrown([&] { session.run(steps(INT64_MAX)); });
    done = true;
  });
  while (!done) {
    session.cancel();
    std::this_thread::yield();
  }
  runner.join();
  EXPECT_NE(said, "nothing thrown");
  session.cancel(false);
  EXPECT_THAT(session.run(steps(10))[0].elements<int64_t>(), ElementsAre(0));
}

TEST(CApi, RequestsHaveTheAnswersOfTheirRuns) {
  const File file(compiled(kCount), "requests");
  const api::Program program(file.path);
  const auto steps = [](int64_t n) { return std::vector{Value::tensor<int64_t>({}, {n})}; };
  tenon_session_options options = TENON_SESSION_OPTIONS_INIT;
  options.max_queue = 2;
  std::optional<api::Session> session(std::in_place, program, options);
  EXPECT_THAT(session->submit(steps(10)).wait()[0].elements<int64_t>(), ElementsAre(0));
  const api::Ticket longest = session->submit(steps(INT64_MAX));
  std::vector<api::Ticket> waiting;
  std::string refused;
  for (int i = 0; i < 4 && refused.empty(); ++i) {
    const std::string said = thrown([&] { waiting.push_back(session->submit(steps(i))); });
    if (said != "nothing thrown") refused = said;
  }
  EXPECT_THAT(refused, HasSubstr("the queue is full: 2 requests wait"));
  EXPECT_THAT(refused, HasSubstr("submit it again after an answer, or raise max_queue"));
  EXPECT_FALSE(longest.is_done());
  longest.cancel();
  EXPECT_THAT(thrown([&] { longest.wait(); }), HasSubstr("cancelled"));
  for (const api::Ticket& ticket : waiting) EXPECT_THAT(ticket.wait()[0].elements<int64_t>(), ElementsAre(0));
  { const api::Ticket forgotten = session->submit(steps(INT64_MAX)); }  // is cancelled, or this test has no end
  const api::Ticket late = session->submit(steps(INT64_MAX));
  session.reset();
  EXPECT_TRUE(late.is_done());
  EXPECT_THAT(thrown([&] { late.wait(); }), HasSubstr("the session ended before the request had an answer"));
}

TEST(CApi, WrongCallsOfRequestsAreErrors) {
  const File file(compiled(kCount), "wrong_requests");
  const api::Program program(file.path);
  const api::Session session(program);
  tenon_ticket* ticket = nullptr;
  const tenon_value* const none[] = {nullptr};
  EXPECT_THAT(text_of(tenon_session_submit(nullptr, nullptr, 0, &ticket)), HasSubstr("argument session is NULL"));
  EXPECT_THAT(text_of(tenon_session_submit(session.get(), none, 1, &ticket)), HasSubstr("input 0 is NULL"));
  EXPECT_THAT(text_of(tenon_session_submit(session.get(), nullptr, 0, &ticket)), HasSubstr("0 inputs were given"));
  EXPECT_EQ(ticket, nullptr);
  const api::Ticket made = session.submit({Value::tensor<int64_t>({}, {3})});
  tenon_value* outputs[2];
  EXPECT_THAT(text_of(tenon_ticket_wait(made.get(), outputs, 2)), HasSubstr("there is space for 2 outputs"));
  EXPECT_THAT(text_of(tenon_ticket_wait(nullptr, outputs, 1)), HasSubstr("argument ticket is NULL"));
  EXPECT_THAT(text_of(tenon_ticket_cancel(nullptr)), HasSubstr("argument ticket is NULL"));
  tenon_session_options options = TENON_SESSION_OPTIONS_INIT;
  options.max_wait_us = UINT64_MAX;
  tenon_session* refused = nullptr;
  EXPECT_THAT(text_of(tenon_session_create(program.get(), &options, &refused)), HasSubstr("max_wait_us is 1844"));
}

TEST(CApi, ThreadsShareASession) {
  const File file(compiled(kReverse), "threads");
  const api::Program program(file.path);
  const api::Session session(program);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Value list = Value::data(program, "Nil");
      for (int i = 0; i < 20; ++i) {
        list = Value::data(program, "Cons", {Value::tensor<float>({}, {static_cast<float>(100 * t + i)}), list});
        const Value first = session.run({list})[0].fields()[0];
        wrong += first.elements<float>()[0] != static_cast<float>(100 * t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A DLPack tensor over `data`, which counts the calls of its deleter.
struct Lent {
  alignas(64) float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t sizes[2] = {2, 3}, strides[2] = {3, 1};
  int deleted = 0;
  DLManagedTensor managed = {{data, {1, 0}, 2, {2, 32, 1}, sizes, strides, 0}, this, [](DLManagedTensor* self) {
                               ++static_cast<Lent*>(self->manager_ctx)->deleted;
                             }};
};

TEST(CApi, DlpackTensorsComeInWithoutACopyWhereTheyCan) {
  Lent dense;
  tenon_value* value = nullptr;
  ASSERT_EQ(text_of(tenon_tensor_from_dlpack(&dense.managed, &value)), "no error");
  EXPECT_EQ(tenon_tensor_data(value), dense.data);
  EXPECT_EQ(dense.deleted, 0);
  tenon_value_free(value);
  EXPECT_EQ(dense.deleted, 1);

  Lent transposed;
  std::swap(transposed.sizes[0], transposed.sizes[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  ASSERT_EQ(text_of(tenon_tensor_from_dlpack(&transposed.managed, &value)), "no error");
  EXPECT_EQ(transposed.deleted, 1);
  EXPECT_THAT(Value(value).elements<float>(), ElementsAre(0, 3, 1, 4, 2, 5));

  Lent offset;
  offset.managed.dl_tensor.byte_offset = 4;
  offset.sizes[1] = 1, offset.strides[0] = 3;
  ASSERT_EQ(text_of(tenon_tensor_from_dlpack(&offset.managed, &value)), "no error");
  EXPECT_THAT(Value(value).elements<float>(), ElementsAre(1, 4));
}

TEST(CApi, DlpackTensorsThatCannotComeInStayTheCallers) {
  Lent wrong;
  tenon_value* value = nullptr;
  wrong.managed.dl_tensor.device.device_type = 2;
  EXPECT_THAT(text_of(tenon_tensor_from_dlpack(&wrong.managed, &value)), HasSubstr("on a device of type 2"));
  wrong.managed.dl_tensor.device.device_type = 1;
  wrong.managed.dl_tensor.dtype.lanes = 4;
  EXPECT_THAT(text_of(tenon_tensor_from_dlpack(&wrong.managed, &value)), HasSubstr("32 bits and 4 lanes"));
  wrong.managed.dl_tensor.dtype.lanes = 1;
  wrong.managed.dl_tensor.ndim = 33;
  EXPECT_THAT(text_of(tenon_tensor_from_dlpack(&wrong.managed, &value)), HasSubstr("rank 33"));
  wrong.managed.dl_tensor.ndim = 2;
  wrong.sizes[0] = -2;
  EXPECT_THAT(text_of(tenon_tensor_from_dlpack(&wrong.managed, &value)), HasSubstr("impossible shape (-2, 3)"));
  wrong.sizes[0] = 2;
  wrong.managed.dl_tensor.data = nullptr;
  EXPECT_THAT(text_of(tenon_tensor_from_dlpack(&wrong.managed, &value)), HasSubstr("no data"));
  EXPECT_EQ(wrong.deleted, 0);
}

TEST(CApi, DlpackTensorsGoOutAndBackAndOutliveTheValue) {
  std::optional<Value> value = Value::tensor<int16_t>({2, 2}, {1, 2, 3, 4});
  DLManagedTensor* exported = nullptr;
  ASSERT_EQ(text_of(tenon_tensor_to_dlpack(value->get(), &exported)), "no error");
  EXPECT_EQ(exported->dl_tensor.data, tenon_tensor_data(value->get()));
  EXPECT_EQ(exported->dl_tensor.dtype.bits, 16);
  value.reset();
  tenon_value* back = nullptr;
  ASSERT_EQ(text_of(tenon_tensor_from_dlpack(exported, &back)), "no error");
  EXPECT_THAT(Value(back).elements<int16_t>(), ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace tenon
