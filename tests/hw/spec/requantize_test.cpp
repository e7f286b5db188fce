#include "hw/spec/requantize.h"
#include "tests/seed.h"

#include <gtest/gtest.h>

#include <random>

namespace tenon::spec {
namespace {

// Floor of floor is floor: dropping bits by the first shift does not change the one rounding at the end.
TEST(Requantize, WithoutResidualIsOneRoundingHalvesUp) {
  std::mt19937_64 random(test_seed(4));
  for (int i = 0; i < 100000; ++i) {
    const auto acc = static_cast<int32_t>(random() % (1 << 24)) - (1 << 23);
    const ChannelParameters channel{static_cast<int32_t>(random() % 4096) - 2048,
                                    static_cast<uint16_t>(0x8000 | random()), static_cast<uint8_t>(16 + random() % 16)};
    const int total = channel.shift + 8;
    const int64_t product = (int64_t{acc} + channel.bias) * channel.multiplier;
    const int64_t expected = clamp((product + (int64_t{1} << (total - 1))) >> total, -128, 127);
    ASSERT_EQ(requantize(acc, channel, {}), expected) << acc << " " << channel.bias << " " << channel.multiplier;
  }
}

TEST(Requantize, ClampsBeforeAndAfterTheResidual) {
  const ChannelParameters one{0, 0x8000, 7};  // v = 256 acc
  LayerParameters layer{.v_lo = 0, .residual = true, .r_zero = 0, .r_multiplier = 0x8000, .r_shift = 7};
  EXPECT_EQ(requantize(-50, one, layer, 20), 20);  // a ReLU on the convolution alone
  layer.v_lo = -2048;
  EXPECT_EQ(requantize(-50, one, layer, 20), -30);
  layer.lo = 0;
  EXPECT_EQ(requantize(-50, one, layer, 20), 0);
  layer.hi = 5;
  EXPECT_EQ(requantize(50, one, layer, 20), 5);
}

TEST(Requantize, BiasWrapsAndResidualSaturates) {
  EXPECT_EQ(requantize(INT32_MAX, {1, 0x8000, 37}, {}), -2);  // INT32_MIN * 2^15 >> 37 = -512 = -2 steps
  const LayerParameters high{.residual = true, .r_zero = -128, .r_multiplier = 0xffff, .r_shift = 0};
  EXPECT_EQ(requantize(0, {}, high, 127), 127);
  const LayerParameters low{.residual = true, .r_zero = 127, .r_multiplier = 0xffff, .r_shift = 0};
  EXPECT_EQ(requantize(0, {}, low, -128), -128);
}

}  // namespace
}  // namespace tenon::spec
