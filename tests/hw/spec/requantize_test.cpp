#include "hw/spec/requantize.h"
#include "tests/seed.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

namespace tenon::spec {
namespace {

// Vectors that Python computed in integers without a size: make_requantize_vectors.py.
TEST(Requantize, EqualsUnboundedIntegers) {
  std::ifstream file(TENON_SOURCE_DIR "/tests/hw/spec/requantize_vectors.txt");
  int vectors = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::array<int64_t, 15> f{};
    for (int64_t& field : f) fields >> field;
    ASSERT_TRUE(fields) << line;
    const ChannelParameters channel{static_cast<int32_t>(f[1]), static_cast<uint16_t>(f[2]),
                                    static_cast<uint8_t>(f[3])};
    const LayerParameters layer{.v_lo = static_cast<int16_t>(f[4]),
                                .v_hi = static_cast<int16_t>(f[5]),
                                .zero = static_cast<int8_t>(f[6]),
                                .lo = static_cast<int8_t>(f[7]),
                                .hi = static_cast<int8_t>(f[8]),
                                .residual = f[9] != 0,
                                .r_zero = static_cast<int8_t>(f[11]),
                                .r_multiplier = static_cast<uint16_t>(f[12]),
                                .r_shift = static_cast<uint8_t>(f[13])};
    EXPECT_EQ(requantize(static_cast<int32_t>(f[0]), channel, layer, static_cast<int8_t>(f[10])), f[14]) << line;
    ++vectors;
  }
  EXPECT_EQ(vectors, 798);
}

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
