// The types of a byte or less against their definition; make_cases.py of the operators has values of other programs.
#include "runtime/narrow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/dtype.h"

namespace tenon::runtime {
namespace {

template <class T>
class NarrowTypes : public testing::Test {};
using Narrows = testing::Types<F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, F4E2M1, I4, U4, I2, U2>;
TYPED_TEST_SUITE(NarrowTypes, Narrows);

template <class T>
std::vector<T> all_values() {
  std::vector<T> values;
  for (int code = 0; code < 1 << T::format.bits(); ++code) values.push_back(T::of_bits(static_cast<uint8_t>(code)));
  return values;
}

TYPED_TEST(NarrowTypes, EveryValueIsExactInItsWideType) {
  for (const TypeParam x : all_values<TypeParam>()) {
    const auto wide = static_cast<Wide<TypeParam>>(x);
    if (x == x) EXPECT_EQ(TypeParam(wide).bits, x.bits);
    else EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(wide))));
  }
}

TYPED_TEST(NarrowTypes, FiniteValuesAreWithinTheRange) {
  double least = HUGE_VAL, most = -HUGE_VAL;
  for (const TypeParam x : all_values<TypeParam>()) {
    const auto value = static_cast<double>(x);
    if (std::isfinite(value)) least = std::min(least, value), most = std::max(most, value);
  }
  EXPECT_EQ(TypeParam::format.min(), least);
  EXPECT_EQ(TypeParam::format.max(), most);
}

template <class T>
class NarrowFloats : public testing::Test {};
using SignedFloats = testing::Types<F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F4E2M1>;
TYPED_TEST_SUITE(NarrowFloats, SignedFloats);

TYPED_TEST(NarrowFloats, RoundToTheNearestAndHalvesToEven) {
  const TypeParam largest(TypeParam::format.max());
  for (uint8_t bits = 0; bits < largest.bits; ++bits) {
    const auto low = static_cast<double>(TypeParam::of_bits(bits));
    const double high = static_cast<double>(TypeParam::of_bits(bits + 1)), middle = low + (high - low) / 2;
    EXPECT_EQ(TypeParam(middle).bits, bits + bits % 2) << middle;
    EXPECT_EQ(TypeParam(std::nextafter(middle, 0)).bits, bits) << middle;
    EXPECT_EQ(TypeParam(std::nextafter(middle, HUGE_VAL)).bits, bits + 1) << middle;
    if (high > 0) {
      EXPECT_EQ(static_cast<double>(TypeParam(-high)), -high);
    }
  }
}

TEST(Narrow, ValuesBeyondTheRangeFollowTheFormat) {
  EXPECT_TRUE(std::isnan(static_cast<float>(F8E4M3FN(1e6))));
  EXPECT_EQ(F8E4M3FN(464.0).bits, 0x7e);  // halfway to the next step: rounds to the even 448
  EXPECT_EQ(static_cast<float>(F8E5M2(-1e6)), -INFINITY);
  EXPECT_EQ(F8E4M3FNUZ(1e6).bits, 0x80);
  EXPECT_EQ(F8E4M3FNUZ(-0.0).bits, 0);
  EXPECT_EQ(static_cast<float>(F4E2M1(100)), 6.0f);
  EXPECT_EQ(static_cast<float>(F8E8M0(0)), std::ldexp(1.0f, -127));
  EXPECT_EQ(static_cast<float>(F8E8M0(3.0)), 4.0f);
  EXPECT_EQ(static_cast<float>(F8E8M0(2.9)), 2.0f);
  EXPECT_TRUE(std::isnan(static_cast<float>(F8E8M0(-1.0))));
}

TEST(Narrow, IntegersKeepTheLowBits) {
  EXPECT_EQ(static_cast<int>(I4(9)), -7);
  EXPECT_EQ(static_cast<int>(U4(-1)), 15);
  EXPECT_EQ(static_cast<int>(I2(2)), -2);
  EXPECT_EQ(static_cast<int>(U2(7)), 3);
  EXPECT_EQ(static_cast<int>(I4(-2.9f)), -2);
  EXPECT_EQ(static_cast<int>(U4(1e300)), 0);
  EXPECT_EQ(static_cast<int>(U4(INFINITY)), 0);
}

TEST(Narrow, DTypesHaveAWidthInFiles) {
  EXPECT_EQ(bits(DType::kI4), 4);
  EXPECT_EQ(bits(DType::kF4E2M1), 4);
  EXPECT_EQ(bits(DType::kU2), 2);
  EXPECT_EQ(bits(DType::kF8E5M2), 8);
  EXPECT_EQ(bits(DType::kF64), 64);
  EXPECT_EQ(bytes(DType::kI4), 1);
}

}  // namespace
}  // namespace tenon::runtime
