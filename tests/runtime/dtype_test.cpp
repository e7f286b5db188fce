// The short floats against the compiler's own, and against their definition.
#include "runtime/dtype.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::runtime {
namespace {

template <class T>
class ShortFloats : public testing::Test {};
using Types = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(ShortFloats, Types);

TYPED_TEST(ShortFloats, EveryValueIsExactInF32AndF64) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto x = TypeParam::of_bits(static_cast<uint16_t>(bits));
    EXPECT_EQ(TypeParam(static_cast<float>(x)).bits, x.bits);  // of a NaN too
    if (x == x) {
      EXPECT_EQ(TypeParam(static_cast<double>(x)).bits, x.bits);
    }
  }
}

TYPED_TEST(ShortFloats, RoundToTheNearestAndHalvesToEven) {
  for (uint16_t bits = 0; TypeParam::of_bits(bits + 1) < TypeParam(INFINITY); ++bits) {
    const auto low = static_cast<double>(TypeParam::of_bits(bits));
    const double high = static_cast<double>(TypeParam::of_bits(bits + 1)), middle = low + (high - low) / 2;
    const uint16_t even = bits + bits % 2;
    for (const double sign : {1.0, -1.0}) {
      const uint16_t minus = sign < 0 ? 0x8000 : 0;
      EXPECT_EQ(TypeParam(sign * middle).bits, minus | even) << middle;
      EXPECT_EQ(TypeParam(sign * std::nextafter(middle, 0)).bits, minus | bits) << middle;
      EXPECT_EQ(TypeParam(sign * std::nextafter(middle, HUGE_VAL)).bits, minus | (bits + 1)) << middle;
    }
  }
}

TYPED_TEST(ShortFloats, AnIntegerIsRoundedOnce) {
  // Just above the middle of two bf16, and in an f64 the middle.
  const int64_t above = (int64_t{1} << 62) + (int64_t{1} << 54) + 1;
  EXPECT_EQ(BFloat16(above).bits, BFloat16(0x1p62 + 0x1p55).bits);
  EXPECT_EQ(BFloat16(-above).bits, BFloat16(-0x1p62 - 0x1p55).bits);
  EXPECT_EQ(BFloat16(static_cast<double>(above)).bits, BFloat16(0x1p62).bits);
  EXPECT_EQ(BFloat16(INT64_MIN).bits, BFloat16(-0x1p63).bits);
  EXPECT_EQ(BFloat16(UINT64_MAX).bits, BFloat16(0x1p64).bits);
  EXPECT_EQ(Half(2049).bits, Half(2048.0).bits);
  EXPECT_EQ(Half(2051).bits, Half(2052.0).bits);
}

#ifdef __FLT16_MANT_DIG__
TEST(Half, IsTheFloatOfTheCompiler) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto mine = static_cast<float>(Half::of_bits(static_cast<uint16_t>(bits)));
    const auto theirs = static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
    EXPECT_TRUE(mine == theirs || (std::isnan(mine) && std::isnan(theirs))) << bits;
  }
}
#endif

TEST(DType, NamesAreReadAndSetsListThem) {
  for (DType dtype : all_dtypes()) EXPECT_EQ(*parse_dtype(name(dtype)), dtype);
  EXPECT_EQ(all_dtypes().size(), kDTypeCount);
  EXPECT_FALSE(parse_dtype("f8"));
  EXPECT_EQ(kReals.str(), "f16 or bf16 or f32 or f64");
  EXPECT_EQ(bytes(DType::kBF16), 2);
}

}  // namespace
}  // namespace tenon::runtime
