// Whole models through the passes: the accuracy that they are known for.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "compiler/frontend/onnx.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/passes.h"
#include "compiler/quantize/quantize.h"
#include "runtime/npy.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

const std::filesystem::path kModels = std::filesystem::path(TENON_SOURCE_DIR) / "tests/models";

runtime::Tensor scaled(std::span<const uint8_t> pixels) {
  runtime::Tensor x(DType::kF32, {static_cast<int64_t>(pixels.size() / 784), 1, 28, 28});
  std::ranges::transform(pixels, x.data<float>().begin(), [](uint8_t v) { return v / 255.0f; });
  return x;
}

Expected<Module> through_the_passes(Context& context, std::string_view file) {
  TENON_TRY_ASSIGN(module, load_onnx(context, kModels / file));
  return run_passes(context, std::move(*module), standard_passes(), {.verify = true});
}

// Share of the digits whose largest logit is the label's.
double accuracy(const Context& context, const Module& module, Symbol main, const runtime::NamedTensors& data) {
  auto x = data.at("x").data<uint8_t>();
  const runtime::Tensor& labels = data.at("y");
  int64_t right = 0, count = labels.size();
  constexpr int64_t kBatch = 100;
  for (int64_t at = 0; at < count; at += kBatch) {
    auto logits = interpret(context, module, main, std::vector{scaled(x.subspan(at * 784, kBatch * 784))});
    if (!logits) {
      ADD_FAILURE() << logits.error().str();
      return 0;
    }
    for (int64_t i = 0; i < kBatch; ++i) {
      auto row = logits->at(0).data<float>().subspan(i * 10, 10);
      const int64_t best = std::ranges::max_element(row) - row.begin();
      const int64_t label =
          labels.dtype() == DType::kI64 ? labels.data<int64_t>()[at + i] : labels.data<uint8_t>()[at + i];
      right += best == label;
    }
  }
  return static_cast<double>(right) / static_cast<double>(count);
}

TEST(Models, FloatResNet8KeepsItsAccuracyThroughThePasses) {
  Context context;
  auto passed = through_the_passes(context, "resnet8_digits.onnx");
  ASSERT_TRUE(passed) << passed.error().str();
  auto data = runtime::load_npz(kModels / "resnet8_digits_test.npz");
  ASSERT_TRUE(data) << data.error().str();
  EXPECT_NEAR(accuracy(context, *passed, context.symbol("main"), *data), 0.983, 1e-9);
}

TEST(Models, QuantizedResNet8StaysWithinThreeDigits) {
  Context context;
  const Symbol main = context.symbol("main");
  auto passed = through_the_passes(context, "resnet8_digits.onnx");
  ASSERT_TRUE(passed) << passed.error().str();
  auto data = runtime::load_npz(kModels / "resnet8_digits_test.npz");
  ASSERT_TRUE(data) << data.error().str();
  auto pixels = data->at("calib").data<uint8_t>();
  Samples samples;
  for (size_t at = 0; at < pixels.size(); at += 32 * 784) samples.push_back({scaled(pixels.subspan(at, 32 * 784))});
  auto ranges = calibrate(context, *passed, main, samples);
  ASSERT_TRUE(ranges) << ranges.error().str();
  auto quantized = quantize(context, *passed, main, *ranges);
  ASSERT_TRUE(quantized) << quantized.error().str();
  ASSERT_TRUE(verify(context, *quantized)) << verify(context, *quantized).error().str();
  const double share = accuracy(context, *quantized, main, *data);
  RecordProperty("accuracy", std::to_string(share));
  EXPECT_GE(share, 0.980);
  const Text text = print(context, *quantized);
  auto again = parse(context, text.text, text.side, "quantized.tn");
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(equal(*quantized, *again));
}

TEST(Models, AQuantizedModelAsItCameKeepsItsAccuracy) {
  Context context;
  auto passed = through_the_passes(context, "resnet8_digits_int8_qdq.onnx");
  ASSERT_TRUE(passed) << passed.error().str();
  auto data = runtime::load_npz(kModels / "resnet8_digits_test.npz");
  ASSERT_TRUE(data) << data.error().str();
  // Every layer on integers.
  auto integers = integer_layers(context, std::move(*passed));
  ASSERT_TRUE(integers) << integers.error().str();
  ASSERT_TRUE(verify(context, *integers)) << verify(context, *integers).error().str();
  const Function& main = *integers->function(context.symbol("main"));
  int layers = 0;
  for (const Binding& binding : main.body.bindings) {
    auto* apply = std::get_if<Apply>(&binding.value);
    if (!apply || (!apply->op->is(ops::kConv2d) && !apply->op->is(ops::kDense) && !apply->op->is(ops::kMatmul)))
      continue;
    EXPECT_EQ(main.type(binding.var).tensor()->dtype, DType::kI32) << print(context, main, binding.value);
    ++layers;
  }
  EXPECT_GE(layers, 10);
  EXPECT_GE(accuracy(context, *integers, context.symbol("main"), *data), 0.982);
}

}  // namespace
}  // namespace tenon::compiler
