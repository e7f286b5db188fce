#include "runtime/media/wav.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <optional>
#include <string>

#include "support/try.h"

namespace tenon::runtime {
namespace {

// The file's numbers are little-endian.
template <class T>
T number(std::span<const std::byte> bytes, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>(value | static_cast<T>(bytes[at + i]) << 8 * i);
  return value;
}
std::string_view text(std::span<const std::byte> bytes, size_t at) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, 4};
}

struct Format {
  uint16_t encoding = 0, channels = 0, bits = 0;
  uint32_t rate = 0;
};
constexpr uint16_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;

// One sample of one channel.
double sample(std::span<const std::byte> bytes, size_t at, const Format& format) {
  if (format.encoding == kFloat) {
    return format.bits == 32 ? std::bit_cast<float>(number<uint32_t>(bytes, at))
                             : std::bit_cast<double>(number<uint64_t>(bytes, at));
  }
  switch (format.bits) {
    case 8: return (number<uint8_t>(bytes, at) - 128.0) / 128;  // the only unsigned form
    case 16: return static_cast<int16_t>(number<uint16_t>(bytes, at)) / 32768.0;
    case 24: {
      const auto high = static_cast<uint32_t>(number<uint16_t>(bytes, at + 1)) << 16;
      return static_cast<int32_t>(high | static_cast<uint32_t>(number<uint8_t>(bytes, at)) << 8) / 2147483648.0;
    }
    default: return static_cast<int32_t>(number<uint32_t>(bytes, at)) / 2147483648.0;
  }
}

}  // namespace

Expected<Recording> decode_wav(std::span<const std::byte> bytes, std::string_view where) {
  const auto fail = [&](std::string what, std::string help = {}) {
    return error(std::move(what), std::string(where), std::move(help));
  };
  if (bytes.size() < 12 || text(bytes, 0) != "RIFF" || text(bytes, 8) != "WAVE") return fail("it is no WAV file");
  std::optional<Format> format;
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const std::string_view name = text(bytes, at);
    const size_t begin = at + 8, length = number<uint32_t>(bytes, at + 4);
    if (name == "fmt ") {
      if (length < 16 || bytes.size() - begin < length) return fail("its description of the samples is cut off");
      format = Format{number<uint16_t>(bytes, begin), number<uint16_t>(bytes, begin + 2),
                      number<uint16_t>(bytes, begin + 14), number<uint32_t>(bytes, begin + 4)};
      if (format->encoding == kExtensible && length >= 26) format->encoding = number<uint16_t>(bytes, begin + 24);
    }
    if (name == "data") {
      if (!format) return fail("it has samples before their description");
      const auto& [encoding, channels, bits, rate] = *format;
      const bool known = encoding == kPcm ? bits == 8 || bits == 16 || bits == 24 || bits == 32
                                          : encoding == kFloat && (bits == 32 || bits == 64);
      if (!known || channels == 0 || rate == 0)
        return fail(
            fmt::format("its samples have the encoding {} with {} bits and {} channels", encoding, bits, channels),
            "PCM of 8, 16, 24 and 32 bits and floats are read");
      if (bytes.size() - begin < length)
        return fail(fmt::format("it has {} bytes of samples, {} are announced", bytes.size() - begin, length));
      const size_t width = bits / 8u, frame = width * channels, count = length / frame;
      Recording recording{rate, Tensor::for_overwrite(DType::kF32, {static_cast<int64_t>(count)})};
      const auto out = recording.samples.data<float>();
      for (size_t i = 0; i < count; ++i) {
        double sum = 0;
        for (size_t c = 0; c < channels; ++c) sum += sample(bytes, begin + i * frame + c * width, *format);
        out[i] = static_cast<float>(sum / channels);
      }
      return recording;
    }
    if (length > bytes.size() - begin) break;
    at = begin + length + length % 2;  // chunks begin at even positions
  }
  return fail("it has no samples");
}

}  // namespace tenon::runtime
