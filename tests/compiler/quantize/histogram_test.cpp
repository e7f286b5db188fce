// Ranges that methods take from a distribution, against the error of the values themselves.
#include "compiler/quantize/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/quantize/calibrate.h"

namespace tenon::compiler {
namespace {

struct Observed {
  std::vector<float> values;
  Range range;
  Histogram histogram;

  explicit Observed(std::vector<float> given) : values(std::move(given)) {
    const auto [lo, hi] = std::ranges::minmax(values);
    range = {lo, hi, true};
    for (const float value : values) histogram.add(value, range);
  }
};

double squared_error(const std::vector<float>& values, const Range& range) {
  const double step = (double{range.hi} - range.lo) / 255;
  double sum = 0;
  for (const double value : values) {
    const double level = std::clamp(std::nearbyint((value - range.lo) / step), 0.0, 255.0);
    sum += std::pow(value - (range.lo + level * step), 2);
  }
  return sum;
}

// Values with long tails: powers of normal ones.
std::vector<float> with_tails(std::mt19937& random, double power) {
  std::normal_distribution<double> normal;
  std::vector<float> values(20000);
  for (float& value : values) {
    const double x = normal(random);
    value = static_cast<float>(std::copysign(std::pow(std::fabs(x), power), x));
  }
  return values;
}

TEST(Histogram, LeastErrorIsNoMoreThanThatOfTheOtherCuts) {
  std::mt19937 random(7);
  for (const double power : {0.5, 1.0, 2.0, 4.0}) {
    const Observed observed(with_tails(random, power));
    const Range best = observed.histogram.least_error(observed.range);
    for (const double tail : {0.0, 1e-4, 1e-3, 1e-2}) {
      const Range other = tail == 0 ? observed.range : observed.histogram.cut(observed.range, tail);
      EXPECT_LE(squared_error(observed.values, best), 1.02 * squared_error(observed.values, other)) << power;
    }
  }
}

TEST(Histogram, LeastDivergenceDropsOutliersAndKeepsUniformValues) {
  std::mt19937 random(7);
  std::vector<float> values = with_tails(random, 1);
  values[0] = 1000;
  const Observed normal(values);
  EXPECT_LT(normal.histogram.least_divergence(normal.range).hi, 20);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& value : values) value = uniform(random);
  const Observed even(values);
  const Range kept = even.histogram.least_divergence(even.range);
  EXPECT_LT(kept.lo, -0.9f);
  EXPECT_GT(kept.hi, 0.9f);
}

TEST(Histogram, ZerosOfAReluDoNotNarrowTheRangeOfLeastDivergence) {
  std::mt19937 random(7);
  std::vector<float> values = with_tails(random, 1);
  for (float& value : values) value = std::fabs(value);
  const Observed positive(values);
  const Range expected = positive.histogram.least_divergence(positive.range);
  values.resize(8 * values.size());  // the others are zeros
  const Observed with_zeros(values);
  const Range found = with_zeros.histogram.least_divergence(with_zeros.range);
  EXPECT_EQ(found.lo, 0);
  EXPECT_GE(found.hi, 0.8f * expected.hi);
}

TEST(Histogram, MethodsHaveNames) {
  for (const Calibration method : {Calibration::kMinMax, Calibration::kPercentile, Calibration::kDivergence,
                                   Calibration::kSquaredError, Calibration::kMeasured}) {
    const auto again = parse_calibration(name(method));
    ASSERT_TRUE(again) << again.error().str();
    EXPECT_EQ(*again, method);
  }
}

}  // namespace
}  // namespace tenon::compiler
