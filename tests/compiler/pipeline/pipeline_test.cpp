// The main job as a test: ResNet-8 from ONNX to the accelerator, equal to the integer reference on every layer.
#include "compiler/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/pipeline/compare.h"
#include "compiler/pipeline/compile_speed.h"
#include "compiler/pipeline/layer_errors.h"
#include "driver/accelerator.h"
#include "runtime/npy.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

constexpr const char* kModels = TENON_SOURCE_DIR "/tests/models/";

// `count` digits of an array of bytes, as floats for the model.
std::vector<Tensor> digits(const std::string& array, size_t count) {
  const auto arrays = runtime::load_npz(std::string(kModels) + "resnet8_digits_test.npz");
  EXPECT_TRUE(arrays) << arrays.error().str();
  const auto bytes = arrays->find(array)->second.data<uint8_t>();
  std::vector<Tensor> samples;
  for (size_t i = 0; i < count; ++i) {
    Tensor sample(DType::kF32, {1, 1, 28, 28});
    for (size_t k = 0; k < 784; ++k) sample.data<float>()[k] = static_cast<float>(bytes[i * 784 + k]) / 255;
    samples.push_back(std::move(sample));
  }
  return samples;
}

class PipelineOnConfiguration : public testing::TestWithParam<const char*> {};

TEST_P(PipelineOnConfiguration, ResNet8EqualsTheIntegerReferenceOnEveryLayer) {
  auto model = load_model(std::string(kModels) + "resnet8_digits.onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  Samples calibration;
  for (Tensor& sample : digits("calib", 64)) calibration.push_back({std::move(sample)});
  auto accelerator = driver::open(std::string("behavioral:") + GetParam());
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  auto compiled = compile(*model, {.accelerators = {{(*accelerator)->info().config}}, .calibration = &calibration});
  ASSERT_TRUE(compiled) << compiled.error().str();

  // One region contains everything between quantize and dequantize.
  ASSERT_EQ(compiled->executable.programs.size(), 1u) << explain(compiled->partitioned, compiled->placements);
  for (const Placement& placement : compiled->placements) {
    EXPECT_EQ(placement.target, placement.op == "quantize" || placement.op == "dequantize" ? "" : "accel")
        << placement.op;
  }

  Comparison comparison(*model, *compiled);
  runtime::SessionOptions options;
  options.accelerators = {accelerator->get()};
  options.hook = comparison.hook();
  auto session = runtime::Session::create(compiled->executable, std::move(options));
  ASSERT_TRUE(session) << session.error().str();
  for (const Tensor& sample : digits("x", 5)) {
    const auto expected = comparison.reference({&sample, 1});
    ASSERT_TRUE(expected) << expected.error().str();
    const auto found = session->run({&sample, 1});
    ASSERT_TRUE(found) << found.error().str();
    const auto equal = comparison.results(*expected, *found);
    EXPECT_TRUE(equal) << equal.error().str();
  }
  EXPECT_EQ(comparison.layers() % 5, 0);
  EXPECT_GE(comparison.layers(), 5 * 9);
}

INSTANTIATE_TEST_SUITE_P(Named, PipelineOnConfiguration, testing::Values("tiny", "default", "wide-8x16", "default-128"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

// As ONNX Runtime's quantizer wrote it: unsigned activations, weights per channel. Each launch equals the reference on
// the same inputs, and the classes are those of the model's own arithmetic.
TEST(Pipeline, AModelThatComesQuantizedRunsOnTheAccelerator) {
  auto model = load_model(std::string(kModels) + "resnet8_digits_int8_qdq.onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  auto accelerator = driver::open("behavioral:default");
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  auto compiled = compile(*model, {.accelerators = {{(*accelerator)->info().config}}});
  ASSERT_TRUE(compiled) << compiled.error().str();
  for (const Placement& placement : compiled->placements) {
    EXPECT_EQ(placement.target, placement.op == "quantize" || placement.op == "dequantize" ? "" : "accel")
        << placement.op;
  }
  EXPECT_EQ(compiled->executable.programs.size(), 1u);

  Comparison comparison(*model, *compiled);
  runtime::SessionOptions options;
  options.accelerators = {accelerator->get()};
  options.hook = comparison.hook();
  auto session = runtime::Session::create(compiled->executable, std::move(options));
  ASSERT_TRUE(session) << session.error().str();
  for (const Tensor& sample : digits("x", 3)) {
    const auto wanted = interpret(*model->context, model->module, model->entry, std::span(&sample, 1));
    ASSERT_TRUE(wanted) << wanted.error().str();
    const auto found = session->run({&sample, 1});
    ASSERT_TRUE(found) << found.error().str();
    const auto a = (*wanted)[0].data<float>(), b = (*found)[0].data<float>();
    EXPECT_EQ(std::ranges::max_element(a) - a.begin(), std::ranges::max_element(b) - b.begin());
  }
  EXPECT_GE(comparison.layers(), 3 * 11);
}

// A region of one layer has no tensor between layers: its output is compared.
TEST(Pipeline, ARegionOfOneLayerIsCompared) {
  auto model = load_model(std::string(kModels) + "resnet8_digits.onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  Module module;
  Function function;
  Context& context = *model->context;
  Builder builder(context, module, function);
  const Atom x = builder.param(context.tensor(runtime::Shape{3, 20}, DType::kF32), "x");
  const auto weights = builder.constant(runtime::Shape{7, 20}, std::vector<float>(140, 0.25f));
  const auto y = builder.apply(ops::kDense, {x, weights}, {}, "y");
  ASSERT_TRUE(y);
  builder.finish(*y);
  module.globals.emplace(model->entry, std::move(function));
  model->module = std::move(module);
  Samples calibration{{Tensor(DType::kF32, {3, 20})}};
  float next = -1;
  for (float& value : calibration[0][0].data<float>()) value = next += 0.03f;
  auto accelerator = driver::open("behavioral:default");
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  auto compiled = compile(*model, {.accelerators = {{(*accelerator)->info().config}}, .calibration = &calibration});
  ASSERT_TRUE(compiled) << compiled.error().str();
  ASSERT_EQ(compiled->executable.programs.size(), 1u);
  Comparison comparison(*model, *compiled);
  auto session =
      runtime::Session::create(compiled->executable, {.accelerators = {accelerator->get()}, .hook = comparison.hook()});
  ASSERT_TRUE(session) << session.error().str();
  const auto found = session->run(calibration[0]);
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(comparison.layers(), 1);
  EXPECT_EQ(comparison.elements(), 21);
}

// Calibrated on data of a tenth of the size, the first layers clip: they are named, with the reason. Calibrated on the
// data itself, no layer is.
TEST(LayerErrors, TheFirstLayerOfWrongRangeIsNamed) {
  auto model = load_model(std::string(kModels) + "tiny_digits.onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  auto accelerator = driver::open("behavioral:default");
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  for (const float size : {0.1f, 1.0f}) {
    Samples calibration;
    for (Tensor& sample : digits("calib", 8)) {
      for (float& value : sample.data<float>()) value *= size;
      calibration.push_back({std::move(sample)});
    }
    auto compiled = compile(*model, {.accelerators = {{(*accelerator)->info().config}}, .calibration = &calibration});
    ASSERT_TRUE(compiled) << compiled.error().str();
    auto errors = LayerErrors::create(*model, *compiled);
    ASSERT_TRUE(errors) << errors.error().str();
    auto session =
        runtime::Session::create(compiled->executable, {.accelerators = {accelerator->get()}, .hook = errors->hook()});
    ASSERT_TRUE(session) << session.error().str();
    for (const Tensor& sample : digits("x", 2)) {
      ASSERT_TRUE(errors->add({&sample, 1}));
      const auto found = session->run({&sample, 1});
      ASSERT_TRUE(found) << found.error().str();
    }
    int on_device = 0;
    for (const LayerError& layer : errors->layers()) {
      on_device += layer.on_device;
      EXPECT_EQ(layer.device_differing, 0) << layer.name;
    }
    EXPECT_GE(on_device, 4);
    if (size == 1) {
      EXPECT_FALSE(errors->first_bad()) << errors->table();
    } else {
      ASSERT_TRUE(errors->first_bad());
      EXPECT_EQ(errors->layers()[*errors->first_bad()].name, "input");
      EXPECT_NE(errors->suggestion().find("beyond the calibrated range"), std::string::npos) << errors->suggestion();
      EXPECT_NE(errors->table().find("<- first"), std::string::npos);
      EXPECT_NE(errors->html("digits").find("class=\"bad\""), std::string::npos);
    }
  }
}

TEST(LayerErrors, AFloatModelHasNoQuantizedLayer) {
  auto model = load_model(std::string(kModels) + "tiny_digits.onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  const auto compiled = compile(*model, {});
  ASSERT_TRUE(compiled) << compiled.error().str();
  const auto errors = LayerErrors::create(*model, *compiled);
  ASSERT_FALSE(errors);
  EXPECT_NE(errors.error().str().find("no quantized layer to compare"), std::string::npos) << errors.error().str();
}

TEST(Pipeline, WithoutCalibrationEverythingRunsOnTheCpuInFloat) {
  auto model = load_model(std::string(kModels) + "tiny_digits.onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  const auto compiled = compile(*model, {.accelerators = {{*spec::load_config("default")}}});
  ASSERT_TRUE(compiled) << compiled.error().str();
  EXPECT_TRUE(compiled->executable.programs.empty());
  for (const Placement& placement : compiled->placements) EXPECT_FALSE(placement.reason.empty());
}

// The executable holds the memory plan: the arena exists before a run, and later runs change no result.
TEST(Pipeline, ResultsOfKernelsShareOneArena) {
  auto model = load_model(std::string(kModels) + "resnet8_digits.onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  CompileOptions options;
  options.cpu.levels = {std::string(runtime::host_levels().front())};
  const auto compiled = compile(*model, options);
  ASSERT_TRUE(compiled) << compiled.error().str();
  const runtime::Executable& executable = compiled->executable;
  auto session = runtime::Session::create(executable, {.threads = 1});
  ASSERT_TRUE(session) << session.error().str();
  std::vector<Tensor> found, expected;
  for (const Tensor& sample : digits("x", 3)) {
    const auto wanted = interpret(*model->context, model->module, model->entry, std::span(&sample, 1));
    ASSERT_TRUE(wanted) << wanted.error().str();
    expected.push_back((*wanted)[0]);
    const auto result = session->run({&sample, 1});
    ASSERT_TRUE(result) << result.error().str();
    found.push_back((*result)[0]);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    for (size_t k = 0; k < 10; ++k) EXPECT_NEAR(found[i].data<float>()[k], expected[i].data<float>()[k], 1e-3) << i;
  }
  const runtime::MemoryRecord& memory = session->profile().memory;
  EXPECT_EQ(memory.allocations, 1u) << "the result's";
  EXPECT_EQ(memory.arena_bytes, executable.main().arena_bytes);
  EXPECT_GE(memory.arena_bytes, 3u * 16 * 28 * 28 * 4) << "a block's input and its two convolutions";
  EXPECT_LE(memory.peak_bytes, 4u * 16 * 28 * 28 * 4) << "without a plan, and reuse, it would be a dozen of them";
  for (size_t i = 0; i < executable.constants.size(); ++i) {
    for (size_t k = 0; k < i; ++k) EXPECT_NE(executable.constants[i], executable.constants[k]);
  }
}

TEST(Pipeline, AnUnboundSizeIsCompiledForAllItsValues) {
  auto model = load_model(std::string(kModels) + "tiny_digits.onnx", {});
  ASSERT_TRUE(model) << model.error().str();
  const auto compiled = compile(*model, {});
  ASSERT_TRUE(compiled) << compiled.error().str();
  auto session = runtime::Session::create(compiled->executable, {});
  ASSERT_TRUE(session) << session.error().str();
  for (const int64_t count : {1, 3, 8}) {
    Tensor input(DType::kF32, {count, 1, 28, 28});
    for (size_t i = 0; i < input.data<float>().size(); ++i)
      input.data<float>()[i] = static_cast<float>(i * 7 % 255) / 255;
    const auto found = session->run({&input, 1});
    ASSERT_TRUE(found) << found.error().str();
    const auto expected = interpret(*model->context, model->module, model->entry, std::span(&input, 1));
    ASSERT_TRUE(expected) << expected.error().str();
    ASSERT_EQ((*found)[0].shape(), (*expected)[0].shape());
    const auto values = (*found)[0].data<float>(), wanted = (*expected)[0].data<float>();
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(values[i], wanted[i], 1e-3) << count << ": " << i;
    }
  }
}

TEST(Pipeline, AnUnknownKindOfFileIsAnError) {
  const auto model = load_model("model.pt", {});
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().str().find("ends in .onnx, .tn or .tnb, not in \".pt\""), std::string::npos)
      << model.error().str();
}

// Visits of nodes for each operator: parsing, inference, all passes, the verifier.
double visits_per_operator(size_t operators, SpeedShape shape = SpeedShape::kMixed) {
  const auto speed = measure_speed(operators, shape);
  EXPECT_TRUE(speed) << speed.error().str();
  return speed ? static_cast<double>(speed->visits()) / static_cast<double>(speed->operators) : 0;
}

TEST(CompileSpeed, WorkPerOperatorDoesNotGrowWithTheModule) {
  EXPECT_LE(visits_per_operator(10000), 1.05 * visits_per_operator(1000));
}
TEST(CompileSpeed, SharedCallsAndTypesAreNotExpanded) {
  for (const SpeedShape shape : {SpeedShape::kLine, SpeedShape::kCalls, SpeedShape::kTypes})
    EXPECT_LE(visits_per_operator(6000, shape), 1.1 * visits_per_operator(2000, shape)) << static_cast<int>(shape);
}
TEST(CompileSpeed, DISABLED_WorkPerOperatorDoesNotGrowToAHundredThousand) {
  EXPECT_LE(visits_per_operator(100000), 1.05 * visits_per_operator(1000));
}

}  // namespace
}  // namespace tenon::compiler
