#include "compiler/quantize/parameters.h"
#include "tests/seed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tenon::compiler {
namespace {

TEST(Parameters, ScalesHoldTheRangeAndZeroExactly) {
  std::mt19937 random(test_seed(1));
  std::normal_distribution<float> normal;
  for (int i = 0; i < 1000; ++i) {
    const float a = normal(random), b = normal(random);
    const Range range{std::min(a, b), std::max(a, b), true};
    const Scale scale = scale_for(range, false);
    EXPECT_NEAR(static_cast<double>(scale.quantize(std::min(0.0f, range.lo))), -128, 1);
    EXPECT_NEAR(static_cast<double>(scale.quantize(std::max(0.0f, range.hi))), 127, 1);
    EXPECT_EQ(scale.quantize(0), scale.zero);
    EXPECT_EQ(scale_for(range, true).zero, 0);
    EXPECT_LE(std::abs(scale_for(range, true).quantize(range.lo)), 127);
  }
  EXPECT_EQ(scale_for({0, 0, true}, false), (Scale{1.0, 0}));
  EXPECT_EQ(scale_for({0, 0, true}, true), (Scale{1.0, 0}));
}

TEST(Parameters, MultiplierAndShiftComeWithinHalfAUnitOfTheRatio) {
  std::mt19937 random(test_seed(2));
  std::uniform_real_distribution<double> exponent(-20, 5);
  for (int i = 0; i < 10000; ++i) {
    const double ratio = std::exp2(exponent(random));
    const auto p = requantize_ratio(ratio);
    ASSERT_GE(p.multiplier, 0x8000);
    ASSERT_LE(p.shift, spec::kMaxShift);
    EXPECT_NEAR(std::ldexp(p.multiplier, -(p.shift + 8)) / ratio, 1, 1.0 / 65536);
    spec::LayerParameters layer;
    set_residual(layer, ratio, 3);
    EXPECT_TRUE(layer.residual);
    EXPECT_NEAR(std::ldexp(layer.r_multiplier, -layer.r_shift) / (256 * ratio), 1, 1.0 / 65536);
  }
}

TEST(Parameters, RatiosBeyondTheFieldsVanishOrSaturate) {
  EXPECT_EQ(requantize_ratio(0), (spec::ChannelParameters{0, 0, 0}));
  EXPECT_EQ(requantize_ratio(std::ldexp(1, -40)), (spec::ChannelParameters{0, 0, 0}));
  EXPECT_EQ(requantize_ratio(1e6), (spec::ChannelParameters{0, 0xffff, 0}));
  EXPECT_EQ(requantize_ratio(std::nextafter(0.5, 0)).multiplier, 0x8000);  // the mantissa rounds up to 2^16
  spec::LayerParameters layer;
  set_residual(layer, 0, 0);
  EXPECT_EQ(layer.r_multiplier, 0);
  set_residual(layer, 1e6, 0);
  EXPECT_EQ(layer.r_multiplier, 0xffff);
}

TEST(Parameters, WeightsAreSymmetricPerChannelAndKeepTheBiasInInt32) {
  const std::vector<float> weights = {1, -2, 0.5f, 0, 0, 0, 1e-12f, 0, 0};
  const std::vector<float> bias = {0, 0, 1000};
  const auto q = quantize_weights(weights, 3, bias, 0.1);
  EXPECT_EQ(q.values[0], 64);
  EXPECT_EQ(q.values[1], -127);
  EXPECT_EQ(q.sums[0], 64 - 127 + 32);
  EXPECT_EQ(q.scales[1], 1.0);
  EXPECT_LE(1000 / (0.1 * q.scales[2]), 1 << 30);
  const auto seven_bits = quantize_weights(weights, 3, bias, 0.1, 64);
  EXPECT_EQ(seven_bits.values[0], 32);
  EXPECT_EQ(seven_bits.values[1], -64);
  EXPECT_DOUBLE_EQ(seven_bits.scales[0], 2.0 / 64);
}

}  // namespace
}  // namespace tenon::compiler
