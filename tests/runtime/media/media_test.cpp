// Pictures and recordings as tensors, and files that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/media/picture.h"
#include "runtime/media/wav.h"

namespace tenon::runtime {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> values(const Tensor& tensor) {
  const auto all = tensor.data<float>();
  return {all.begin(), all.end()};
}
std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// --- Pictures ---

// Red and blue pixels.
const std::string kPng =
    "\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x02\x00\x00\x00\x01"
    "\x08\x02\x00\x00\x00\x7b\x40\xe8\xdd\x00\x00\x00\x0f\x49\x44\x41\x54\x78\x9c\x63\xf8\xcf\xc0\xc0"
    "\xd0\xf0\x1f\x00\x08\x00\x02\x7f\x9c\x45\x40\x4e\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82"s;

class Picture : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto found = decode_picture(bytes_of(kPng), {}, "p");
        !found && found.error().what.find("reads no") != std::string::npos)
      GTEST_SKIP() << "a build without stb";
  }
  static Tensor must_decode(const std::string& file, const PictureOptions& options) {
    auto tensor = decode_picture(bytes_of(file), options, "p.png");
    EXPECT_TRUE(tensor) << tensor.error().str();
    return tensor ? *tensor : Tensor();
  }
  static std::string message(const std::string& file, const PictureOptions& options) {
    const auto tensor = decode_picture(bytes_of(file), options, "p.png");
    return tensor ? "a picture" : tensor.error().str();
  }
  // Binary PNM: gray values, row by row.
  static std::string gray(int height, int width, const std::vector<int>& pixels) {
    std::string file = "P5 " + std::to_string(width) + " " + std::to_string(height) + " 255\n";
    for (const int pixel : pixels) file.push_back(static_cast<char>(pixel));
    return file;
  }
};

TEST_F(Picture, ChannelsAreWhereTheModelWantsThem) {
  const Tensor planes = must_decode(kPng, {});
  EXPECT_EQ(planes.shape(), (Shape{1, 3, 1, 2}));
  EXPECT_THAT(values(planes), ElementsAre(255, 0, 0, 128, 0, 255));
  const Tensor last = must_decode(kPng, {.channels_last = true});
  EXPECT_EQ(last.shape(), (Shape{1, 1, 2, 3}));
  EXPECT_THAT(values(last), ElementsAre(255, 0, 0, 0, 128, 255));
  EXPECT_EQ(must_decode(kPng, {.gray = true}).shape(), (Shape{1, 1, 1, 2}));
}

TEST_F(Picture, ValuesAreNormalizedByChannel) {
  EXPECT_THAT(values(must_decode(kPng, {.subtract = {127}, .divide = {128}})),
              ElementsAre(1, -127.0f / 128, -127.0f / 128, 1.0f / 128, -127.0f / 128, 1));
  EXPECT_THAT(values(must_decode(kPng, {.subtract = {55, 0, 5}, .divide = {2, 4, 5}})),
              ElementsAre(100, -27.5f, 0, 32, -1, 50));
}

TEST_F(Picture, TheCenterIsCutOutOfTheResizedPicture) {
  // The middle columns of a picture that is too wide.
  EXPECT_THAT(
      values(must_decode(gray(2, 4, {10, 20, 30, 40, 50, 60, 70, 80}), {.height = 2, .width = 2, .gray = true})),
      ElementsAre(20, 30, 60, 70));
  // The same by a share: 2 of 4 pixels on each side.
  std::vector<int> squares(16);
  for (int i = 0; i < 16; ++i) squares[static_cast<size_t>(i)] = i * 10;
  EXPECT_THAT(values(must_decode(gray(4, 4, squares), {.height = 2, .width = 2, .crop = 0.5, .gray = true})),
              ElementsAre(50, 60, 90, 100));
  // A constant stays constant at every size.
  for (const int64_t side : {1, 3, 7, 40}) {
    const Tensor same =
        must_decode(gray(5, 9, std::vector<int>(45, 77)), {.height = side, .width = side, .gray = true});
    for (const float value : values(same)) EXPECT_FLOAT_EQ(value, 77);
  }
}

TEST_F(Picture, ASmallerPictureIsTheMeanOfAreas) {
  const Tensor half =
      must_decode(gray(1, 8, {0, 0, 0, 0, 200, 200, 200, 200}), {.height = 1, .width = 4, .gray = true});
  const auto found = values(half);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_NEAR(found[1] + found[2], 200, 1) << "symmetric around the edge";
}

TEST_F(Picture, WhatIsWrongIsNamed) {
  EXPECT_THAT(message("not a picture", {}), HasSubstr("p.png: error: it is no picture"));
  EXPECT_THAT(message(kPng.substr(0, 45), {}), HasSubstr("p.png: error: the picture is damaged"));
  EXPECT_THAT(message("P5 60000 60000 255\n", {}), HasSubstr("a picture of 60000 x 60000 pixels is too large"));
  EXPECT_THAT(message(kPng, {.height = 65000, .width = 65000}), HasSubstr("it would be too large"));
  EXPECT_THAT(message(kPng, {.height = 70000}), HasSubstr("sides must be 1 to 65536"));
  EXPECT_THAT(message(kPng, {.crop = 0}), HasSubstr("the share to crop is 0"));
  EXPECT_THAT(message(kPng, {.subtract = {1, 2}}), HasSubstr("2 values to normalize by, must be one or 3"));
  EXPECT_THAT(message(kPng, {.divide = {0}}), HasSubstr("a channel is divided by 0"));
  for (size_t length = 0; length < kPng.size(); ++length) (void)message(kPng.substr(0, length), {});
}

// --- Recordings ---

template <class T>
void put(std::string& to, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  to.append(bytes, sizeof(T));
}
std::string chunk(const std::string& name, const std::string& data) {
  std::string text = name;
  put(text, static_cast<uint32_t>(data.size()));
  return text + data + (data.size() % 2 == 1 ? "\0"s : ""s);
}
std::string format(uint16_t encoding, uint16_t channels, uint32_t rate, uint16_t bits) {
  std::string text;
  put(text, encoding), put(text, channels), put(text, rate);
  put(text, rate * channels * bits / 8u), put(text, static_cast<uint16_t>(channels * bits / 8)), put(text, bits);
  return chunk("fmt ", text);
}
std::string wav(const std::string& chunks) {
  std::string text = "RIFF";
  put(text, static_cast<uint32_t>(chunks.size() + 4));
  return text + "WAVE" + chunks;
}
Recording must_decode(const std::string& file) {
  auto recording = decode_wav(bytes_of(file), "a.wav");
  EXPECT_TRUE(recording) << recording.error().str();
  return recording ? std::move(*recording) : Recording{.rate = 0, .samples = Tensor(DType::kF32, {0})};
}
std::string message(const std::string& file) {
  const auto recording = decode_wav(bytes_of(file), "a.wav");
  return recording ? "a recording" : recording.error().str();
}

TEST(Wav, EachEncodingIsRead) {
  std::string data;
  for (const int16_t value : {0, 16384, -32768, 32767}) put(data, value);
  // A chunk of odd length in between is skipped.
  const Recording words = must_decode(wav(format(1, 1, 16000, 16) + chunk("LIST", "odd") + chunk("data", data)));
  EXPECT_EQ(words.rate, 16000u);
  EXPECT_THAT(values(words.samples), ElementsAre(0, 0.5f, -1, 32767 / 32768.0f));
  EXPECT_THAT(values(must_decode(wav(format(1, 1, 8000, 8) + chunk("data", "\x80\x00\xc0"s))).samples),
              ElementsAre(0, -1, 0.5f));
  EXPECT_THAT(values(must_decode(wav(format(1, 1, 8000, 24) + chunk("data", "\x00\x00\x40\x00\x00\x80"s))).samples),
              ElementsAre(0.5f, -1));
  data.clear();
  put(data, int32_t{1} << 30), put(data, INT32_MIN);
  EXPECT_THAT(values(must_decode(wav(format(1, 1, 8000, 32) + chunk("data", data))).samples), ElementsAre(0.5f, -1));
  data.clear();
  put(data, 0.25f), put(data, -0.75f);
  EXPECT_THAT(values(must_decode(wav(format(3, 1, 8000, 32) + chunk("data", data))).samples),
              ElementsAre(0.25f, -0.75f));
  // Two channels become their mean.
  EXPECT_THAT(values(must_decode(wav(format(3, 2, 8000, 32) + chunk("data", data))).samples), ElementsAre(-0.25f));
  data.clear();
  put(data, 0.125);
  EXPECT_THAT(values(must_decode(wav(format(3, 1, 8000, 64) + chunk("data", data))).samples), ElementsAre(0.125f));
}

TEST(Wav, WhatIsWrongIsNamed) {
  EXPECT_THAT(message("RIFF1234"), HasSubstr("a.wav: error: it is no WAV file"));
  EXPECT_THAT(message(wav("")), HasSubstr("it has no samples"));
  EXPECT_THAT(message(wav(chunk("data", "1234"))), HasSubstr("samples before their description"));
  EXPECT_THAT(message(wav(format(7, 1, 8000, 8) + chunk("data", "12"))), HasSubstr("the encoding 7 with 8 bits"));
  EXPECT_THAT(message(wav(format(1, 0, 8000, 8) + chunk("data", "12"))), HasSubstr("0 channels"));
  const std::string good = wav(format(1, 1, 8000, 16) + chunk("data", "12345678"));
  EXPECT_THAT(message(good.substr(0, good.size() - 1)), HasSubstr("it has 7 bytes of samples, 8 are announced"));
  EXPECT_THAT(message(good.substr(0, 24)), HasSubstr("its description of the samples is cut off"));
  for (size_t length = 0; length < good.size(); ++length) EXPECT_NE(message(good.substr(0, length)), "a recording");
}

}  // namespace
}  // namespace tenon::runtime
