// Spectrograms beside those of direct products in numpy, and options that do not fit.
#include "runtime/media/spectrogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tenon::runtime {
namespace {

using testing::HasSubstr;
using Scale = SpectrogramOptions::Scale;

Tensor two_tones(int64_t count) {
  Tensor samples(DType::kF32, {count});
  for (int64_t t = 0; t < count; ++t)
    samples.data<float>()[static_cast<size_t>(t)] = static_cast<float>(0.5 * std::sin(0.2 * static_cast<double>(t)) +
                                                                       0.25 * std::cos(1.7 * static_cast<double>(t)));
  return samples;
}

void expect(const SpectrogramOptions& options, const Shape& shape, const std::vector<double>& expected) {
  const auto found = mel_spectrogram(two_tones(40), 8000, options, "r.wav");
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(found->shape(), shape);
  ASSERT_EQ(found->data<float>().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found->data<float>()[i], expected[i], 2e-5) << i;
}

TEST(Spectrogram, BandsAreThoseOfTheReference) {
  expect({.bands = 3, .window = 12, .hop = 10}, {1, 3, 5},
         {-10.357141, -5.817591, -6.093175, -6.736173, -5.84766, -9.061205, -7.614352, -7.513419, -8.141249, -7.461732,
          -8.056264, -7.693234, -7.729486, -7.679949, -7.837523});
  expect({.bands = 3,
          .window = 10,
          .fft = 16,
          .hop = 10,
          .low = 100,
          .high = 3000,
          .slaney = false,
          .centered = false,
          .scale = Scale::kDecibels},
         {1, 3, 3}, {5.178694, -0.713198, 1.642293, 0.388396, -5.423753, -0.930959, -2.43499, -2.959172, -2.21436});
  expect({.bands = 2, .window = 12, .hop = 10, .scale = Scale::kWhisper}, {1, 2, 4},
         {-0.120417, 0.323468, 0.298724, 0.224619, 0.114737, 0.154047, 0.158256, 0.155641});
  expect({.bands = 2, .window = 16, .hop = 12, .slaney = false, .scale = Scale::kPower}, {1, 2, 4},
         {0.410591, 2.458153, 3.429226, 2.684841, 1.068276, 1.258966, 1.241924, 1.249945});
  // Frames first: the same values, transposed.
  expect({.bands = 2, .window = 16, .hop = 12, .slaney = false, .scale = Scale::kDecimal, .frames_first = true},
         {1, 4, 2}, {-0.38659, 0.028684, 0.390609, 0.100014, 0.535196, 0.094095, 0.428919, 0.096891});
}

TEST(Spectrogram, SilenceHasTheLeastPower) {
  const auto silence = mel_spectrogram(Tensor(DType::kF32, {400}), 16000, {.bands = 4, .floor = 1e-5}, "r.wav");
  ASSERT_TRUE(silence) << silence.error().str();
  for (const float value : silence->data<float>()) EXPECT_NEAR(value, std::log(1e-5), 1e-5);
}

TEST(Spectrogram, WhatIsWrongIsNamed) {
  const auto message = [](const SpectrogramOptions& options, int64_t count = 1000) {
    const auto found = mel_spectrogram(Tensor(DType::kF32, {count}), 16000, options, "r.wav");
    return found ? "a spectrogram" : found.error().str();
  };
  EXPECT_EQ(message({}), "a spectrogram");
  EXPECT_THAT(message({}, 200), HasSubstr("r.wav: error: it has 200 samples, a spectrogram requires 201"));
  EXPECT_THAT(message({.centered = false}, 399), HasSubstr("requires 400"));
  EXPECT_THAT(message({.bands = -1}), HasSubstr("-1 bands"));
  EXPECT_THAT(message({.window = 1}), HasSubstr("a window of 1 samples, must be 2 to 65536"));
  EXPECT_THAT(message({.fft = 300}), HasSubstr("a transform of 300 samples for a window of 400"));
  EXPECT_THAT(message({.window = 4099}), HasSubstr("odd factor 4099 is above 1024"));
  EXPECT_THAT(message({.hop = 0}), HasSubstr("0 samples from a frame to the next"));
  EXPECT_THAT(message({.high = 9000}),
              HasSubstr("bands from 0 to 9000 Hz, must be between 0 and half of the rate, 8000"));
  EXPECT_THAT(message({.low = 500, .high = 400}), HasSubstr("bands from 500 to 400 Hz"));
  EXPECT_THAT(message({.floor = 0}), HasSubstr("the least power is 0"));
}

}  // namespace
}  // namespace tenon::runtime
