// Cross-layer equalization and bias correction on a network with depthwise layers.
#include "compiler/quantize/equalize.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "compiler/ir/builder.h"
#include "compiler/ir/verifier.h"
#include "compiler/quantize/measured.h"
#include "compiler/quantize/parameters.h"
#include "compiler/quantize/results.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Shape;
using runtime::Tensor;

class EqualizeTest : public testing::Test {
 protected:
  Tensor random_tensor(const Shape& shape, float scale) {
    Tensor tensor(DType::kF32, shape);
    std::normal_distribution<float> normal(0, scale);
    for (float& value : tensor.data<float>()) value = normal(random_);
    return tensor;
  }
  Atom apply(const char* op, Atoms args, Attrs attrs = {}) {
    auto atom = builder_.apply(op, std::move(args), std::move(attrs));
    EXPECT_TRUE(atom) << atom.error().str();
    return *atom;
  }
  // Rows of the weights, and the bias, have magnitudes from 1 to 1/64.
  Atom conv(Atom x, int64_t in, int64_t out, int64_t kernel, int64_t groups, bool uneven) {
    Tensor weights = random_tensor({out, in / groups, kernel, kernel}, 0.5f), bias = random_tensor({out}, 0.3f);
    const auto values = weights.data<float>(), offsets = bias.data<float>();
    for (size_t i = 0; uneven && i < values.size(); ++i) {
      const size_t channel = i / (values.size() / offsets.size());
      const float factor = std::exp2(-static_cast<float>(channel % 7));
      values[i] *= factor;
      if (i % (values.size() / offsets.size()) == 0) offsets[channel] *= factor;
    }
    const int64_t pad = kernel / 2;
    const Atom y = apply("conv2d", {x, builder_.constant(std::move(weights))},
                         {{"padding", std::vector<int64_t>{pad, pad, pad, pad}}, {"groups", groups}});
    return apply("bias_add", {y, builder_.constant(std::move(bias))});
  }
  // An inverted residual: expansion, depthwise, projection.
  void build(double bound) {
    const auto clamp = [&](Atom x) {
      return std::isinf(bound) ? apply("relu", {x}) : apply("clip", {x}, {{"min", 0.0}, {"max", bound}});
    };
    const Atom x = builder_.param(context_.tensor(Shape{1, 4, 8, 8}, DType::kF32), "x");
    const Atom expanded = clamp(conv(x, 4, 14, 1, 1, true));
    const Atom depthwise = clamp(conv(expanded, 14, 14, 3, 14, true));
    builder_.finish(conv(depthwise, 14, 4, 1, 1, false));
    module_.globals.emplace(main_, std::move(function_));
    for (int i = 0; i < 4; ++i) samples_.push_back({random_tensor({1, 4, 8, 8}, 1)});
  }
  Results results(const Module& module) {
    auto found = run_samples(interpreter(context_), module, main_, samples_, samples_.size());
    EXPECT_TRUE(found) << found.error().str();
    return std::move(*found);
  }
  double error_of(const CalibrationOptions& options) {
    const auto found = calibrate_by_error(context_, module_, main_, samples_, options);
    EXPECT_TRUE(found) << found.error().str();
    const auto quantized = quantize(context_, found->equalized ? *found->equalized : module_, main_, found->ranges,
                                    {.means = found->means});
    EXPECT_TRUE(quantized && verify(context_, *quantized));
    return relative_error(results(*quantized), results(module_));
  }

  std::mt19937 random_{test_seed(13)};
  Context context_;
  Module module_;
  Function function_;
  Builder builder_{context_, module_, function_};
  Symbol main_ = context_.symbol("main");
  Samples samples_;
};

TEST_F(EqualizeTest, TheFunctionStaysTheSame) {
  for (const double bound : {HUGE_VAL, 2.0}) {
    module_ = {}, function_ = {}, samples_.clear();
    build(bound);
    const auto observed = observe(context_, module_, main_, samples_, {});
    ASSERT_TRUE(observed) << observed.error().str();
    const Equalized equalized = equalize(module_, *observed);
    EXPECT_EQ(equalized.layers, 2u);
    ASSERT_TRUE(verify(context_, equalized.module));
    EXPECT_LT(relative_error(results(equalized.module), results(module_)), 1e-10);
    // The channels before the depthwise layer have one range.
    const auto after = observe(context_, equalized.module, main_, samples_, {});
    ASSERT_TRUE(after) << after.error().str();
    const VarId expanded = find_layers(context_, module_, main_)[0].root;
    const ChannelStatistics& channels = after->channels.at(main_)[index(expanded)];
    const float most = std::ranges::max(channels.hi);
    for (size_t i = 0; i < channels.hi.size(); ++i) {
      const float before = observed->channels.at(main_)[index(expanded)].hi[i];
      if (before <= most / 32) continue;  // its factor is the least one
      EXPECT_NEAR(channels.hi[i], most, 1e-3 * most) << bound << ", channel " << i;
    }
  }
}

TEST_F(EqualizeTest, ResultsOfUnevenChannelsAreCloser) {
  build(HUGE_VAL);
  EXPECT_LT(error_of({.equalize = true}), error_of({}));
}

TEST_F(EqualizeTest, WhatHasOtherUsersStays) {
  const Atom x = builder_.param(context_.tensor(Shape{1, 4, 8, 8}, DType::kF32), "x");
  const Atom first = apply("relu", {conv(x, 4, 8, 1, 1, true)});
  const Atom second = conv(first, 8, 8, 3, 8, true);
  builder_.finish(apply("add", {second, first}));
  module_.globals.emplace(main_, std::move(function_));
  samples_.push_back({random_tensor({1, 4, 8, 8}, 1)});
  const auto observed = observe(context_, module_, main_, samples_, {});
  ASSERT_TRUE(observed) << observed.error().str();
  EXPECT_EQ(equalize(module_, *observed).layers, 0u);
}

// Weights of 7.4 steps, which are rounded to 7: what is missing of the mean is in the bias.
TEST_F(EqualizeTest, BiasesTakeTheMeanErrorOfTheWeights) {
  const Atom x = builder_.param(context_.tensor(Shape{1, 2, 4, 4}, DType::kF32), "x");
  const Tensor weights = Tensor::of<float>({1, 2, 1, 1}, std::array{127.0f, 7.4f});
  builder_.finish(apply("conv2d", {x, builder_.constant(weights)}));
  module_.globals.emplace(main_, std::move(function_));
  Tensor sample(DType::kF32, {1, 2, 4, 4});
  for (size_t i = 0; i < 32; ++i) sample.data<float>()[i] = i < 16 ? 0.01f * static_cast<float>(i) : 30.0f;
  samples_.push_back({std::move(sample)});
  EXPECT_LT(error_of({.correct_biases = true}), 0.1 * error_of({}));

  const QuantizedWeights rounded = quantize_weights(weights.data<float>(), 1, {}, 1);
  const std::array means{5.0, 10.0};
  EXPECT_NEAR(mean_errors(weights, rounded, 1, means)[0], -4, 1e-5);
  const Tensor grouped = Tensor::of<float>({2, 1, 1, 2}, std::array{127.0f, 7.4f, 127.0f, 6.6f});
  const std::vector<double> errors = mean_errors(grouped, quantize_weights(grouped.data<float>(), 2, {}, 1), 2, means);
  EXPECT_NEAR(errors[0], -2, 1e-5);
  EXPECT_NEAR(errors[1], 4, 1e-5);
}

}  // namespace
}  // namespace tenon::compiler
