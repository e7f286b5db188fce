// Calibration by native kernels beside calibration by the interpreter.
#include "compiler/pipeline/native_runner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/text.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/quantize/measured.h"
#include "runtime/npy.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

constexpr const char* kDigits = TENON_SOURCE_DIR "/tests/models/resnet8_digits";

Samples calibration_digits(size_t count) {
  const auto arrays = runtime::load_npz(std::string(kDigits) + "_test.npz");
  EXPECT_TRUE(arrays) << arrays.error().str();
  const auto bytes = arrays->find("calib")->second.data<uint8_t>();
  Samples samples;
  for (size_t i = 0; i < count; ++i) {
    Tensor sample(DType::kF32, {1, 1, 28, 28});
    for (size_t k = 0; k < 784; ++k) sample.data<float>()[k] = static_cast<float>(bytes[i * 784 + k]) / 255;
    samples.push_back({std::move(sample)});
  }
  return samples;
}

TEST(NativeRunner, TheRangesAreThoseOfTheInterpreter) {
  const auto model = load_model(std::string(kDigits) + ".onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  const Samples samples = calibration_digits(4);
  for (const Calibration method : {Calibration::kMinMax, Calibration::kSquaredError}) {
    std::vector<std::string> steps;
    CalibrationOptions options{.method = method};
    const auto expected = calibrate(*model->context, model->module, model->entry, samples, options);
    options.runner = native_runner(*model->context);
    options.progress = [&](std::string_view step, size_t done, size_t total) {
      EXPECT_EQ(total, samples.size());
      if (done == 0) steps.emplace_back(step);
    };
    const auto found = calibrate(*model->context, model->module, model->entry, samples, options);
    ASSERT_TRUE(expected && found) << (found ? expected : found).error().str();
    EXPECT_EQ(steps.size(), method == Calibration::kMinMax ? 1u : 2u);
    const auto &a = expected->at(model->entry), &b = found->at(model->entry);
    ASSERT_EQ(a.size(), b.size());
    int observed = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].observed, b[i].observed);
      observed += a[i].observed;
      // A cut of a distribution moves by a bin where a value lies beside its edge.
      const float width = a[i].hi - a[i].lo, most = width * (method == Calibration::kMinMax ? 1e-5f : 1e-3f);
      EXPECT_NEAR(a[i].lo, b[i].lo, most);
      EXPECT_NEAR(a[i].hi, b[i].hi, most);
    }
    EXPECT_GE(observed, 12);  // the input, 11 layers and more
  }
}

TEST(NativeRunner, MeasuredCalibrationTakesTheSameMethod) {
  const auto model = load_model(std::string(kDigits) + ".onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  const Samples samples = calibration_digits(2);
  CalibrationOptions options{.method = Calibration::kMeasured};
  const auto expected = calibrate_by_error(*model->context, model->module, model->entry, samples, options);
  options.runner = native_runner(*model->context);
  const auto found = calibrate_by_error(*model->context, model->module, model->entry, samples, options);
  ASSERT_TRUE(expected && found) << (found ? expected : found).error().str();
  EXPECT_EQ(expected->way.method, found->way.method);
  ASSERT_EQ(expected->tried.size(), found->tried.size());
  for (size_t i = 0; i < found->tried.size(); ++i) {
    EXPECT_NEAR(std::log(expected->tried[i].error), std::log(found->tried[i].error), 0.2);
  }
}

// The interpreter observes what the native code of a function with control flow does not result in.
TEST(NativeRunner, ControlFlowIsCalibratedByTheInterpreter) {
  Context context;
  const auto module = parse(context, R"(#[version = "1"]
    const $w: Tensor[(2, 2), f32] = [0.3, -0.2, 0.1, 0.4];
    def @main(%x: Tensor[(1, 2), f32], %c: Tensor[(), bool]) -> Tensor[(1, 2), f32] {
      if (%c) { dense(%x, $w) } else { %x }
    })");
  ASSERT_TRUE(module) << module.error().str();
  const Symbol main = context.symbol("main");
  Tensor x(DType::kF32, {1, 2}), yes(DType::kBool, {});
  x.data<float>()[0] = 3;
  yes.data<bool>()[0] = true;
  CalibrationOptions options;
  options.runner = [](const Module&, Symbol) -> Expected<RunFunction> {
    return error("the function has control flow", {}, {}, Fault::kInternal);
  };
  const auto ranges = calibrate(context, *module, main, {{x, yes}}, options);
  ASSERT_TRUE(ranges) << ranges.error().str();
  EXPECT_EQ(ranges->at(main)[0].hi, 3);
}

}  // namespace
}  // namespace tenon::compiler
