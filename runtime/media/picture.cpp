#include "runtime/media/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "support/try.h"

#ifdef TENON_STB
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_NO_STDIO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop
#endif

namespace tenon::runtime {

#ifndef TENON_STB

Expected<Tensor> decode_picture(std::span<const std::byte>, const PictureOptions&, std::string_view where) {
  return error("this build of Tenon reads no pictures", std::string(where), "build it with libstb-dev installed");
}

#else

namespace {

constexpr int64_t kMaxValues = int64_t{1} << 28, kMaxSide = 1 << 16;

// Row-major, channels last, values 0 .. 255.
struct Pixels {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<float> values;
};

Status check(const PictureOptions& options) {
  const auto fail = [](std::string what) -> Status { return error(std::move(what), {}, {}, Fault::kUsage); };
  if (options.height < 0 || options.width < 0 || options.height > kMaxSide || options.width > kMaxSide)
    return fail(
        fmt::format("a picture of {} x {} pixels, sides must be 1 to {}", options.height, options.width, kMaxSide));
  if (!(options.crop > 0 && options.crop <= 1))
    return fail(fmt::format("the share to crop is {}, must be in 0 .. 1, without 0", options.crop));
  const size_t channels = options.gray ? 1 : 3;
  for (const auto* values : {&options.subtract, &options.divide}) {
    if (values->size() != 1 && values->size() != channels)
      return fail(fmt::format("{} values to normalize by, must be one or {}", values->size(), channels));
    if (!std::ranges::all_of(*values, [](double value) { return std::isfinite(value); }))
      return fail("a value to normalize by is not finite");
  }
  if (std::ranges::find(options.divide, 0.0) != options.divide.end()) return fail("a channel is divided by 0");
  return {};
}

Expected<Pixels> decode(std::span<const std::byte> bytes, int channels) {
  const auto* data = reinterpret_cast<const stbi_uc*>(bytes.data());
  if (bytes.size() > INT32_MAX) return error("the file has more than 2 GiB");
  const auto size = static_cast<int>(bytes.size());
  int width = 0, height = 0, stored = 0;
  if (!stbi_info_from_memory(data, size, &width, &height, &stored))
    return error(fmt::format("it is no picture: {}", stbi_failure_reason()), {},
                 "PNG, JPEG, BMP, GIF, TGA, PSD and PNM are read");
  if (width < 1 || height < 1 || int64_t{width} * height > kMaxValues / std::max(channels, stored))
    return error(fmt::format("a picture of {} x {} pixels is too large", height, width));
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(data, size, &width, &height, &stored, channels), stbi_image_free);
  if (!pixels) return error(fmt::format("the picture is damaged: {}", stbi_failure_reason()));
  Pixels result{height, width, channels, {}};
  const std::span<const stbi_uc> values(pixels.get(), static_cast<size_t>(result.height * result.width * channels));
  result.values.assign(values.begin(), values.end());
  return result;
}

// What one element of a resized axis is: the sum of the source's elements from `first` on with these weights.
struct Window {
  int64_t first = 0;
  std::vector<double> weights;
};
// A triangle around the center of each element, as wide as the distance to its neighbours in the source, or in the
// result where that is larger.
std::vector<Window> windows(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), support = std::max(scale, 1.0);
  std::vector<Window> all(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    Window& window = all[static_cast<size_t>(i)];
    const double center = (static_cast<double>(i) + 0.5) * scale;
    window.first = std::max<int64_t>(0, std::llround(center - support));
    const int64_t end = std::min(from, static_cast<int64_t>(std::llround(center + support)));
    double sum = 0;
    for (int64_t k = window.first; k < end; ++k) {
      window.weights.push_back(std::max(0.0, 1 - std::abs(static_cast<double>(k) + 0.5 - center) / support));
      sum += window.weights.back();
    }
    for (double& weight : window.weights) weight /= sum;
  }
  return all;
}

// Along rows first, then along columns.
Expected<Pixels> resized(const Pixels& from, int64_t height, int64_t width) {
  if (from.height == height && from.width == width) return from;
  const int64_t channels = from.channels, most = kMaxValues / channels;
  if (height > most / width || from.height > most / width)
    return error(fmt::format("resized to {} x {} pixels it would be too large", height, width));
  const auto make = [&](int64_t rows) {
    return Pixels{rows, width, channels, std::vector<float>(static_cast<size_t>(rows * width * channels))};
  };
  Pixels rows = make(from.height), result = make(height);
  const std::vector<Window> along = windows(from.width, width), across = windows(from.height, height);
  const auto at = [](const Pixels& pixels, int64_t y, int64_t x, int64_t c) {
    return static_cast<size_t>((y * pixels.width + x) * pixels.channels + c);
  };
  const auto sum = [](const Window& window, auto&& value) {
    double total = 0;
    for (size_t k = 0; k < window.weights.size(); ++k)
      total += window.weights[k] * value(window.first + static_cast<int64_t>(k));
    return static_cast<float>(total);
  };
  for (int64_t y = 0; y < from.height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c)
        rows.values[at(rows, y, x, c)] =
            sum(along[static_cast<size_t>(x)], [&](int64_t k) { return from.values[at(from, y, k, c)]; });
    }
  }
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c)
        result.values[at(result, y, x, c)] =
            sum(across[static_cast<size_t>(y)], [&](int64_t k) { return rows.values[at(rows, k, x, c)]; });
    }
  }
  return result;
}

}  // namespace

Expected<Tensor> decode_picture(std::span<const std::byte> bytes, const PictureOptions& options,
                                std::string_view where) {
  const auto in_file = [&](Diagnostic problem) {
    problem.where = where;
    return std::unexpected(std::move(problem));
  };
  TENON_TRY(check(options));
  auto pixels = decode(bytes, options.gray ? 1 : 3);
  if (!pixels) return in_file(std::move(pixels.error()));
  const int64_t height = options.height > 0 ? options.height : pixels->height,
                width = options.width > 0 ? options.width : pixels->width;
  // The result is the center of the resized picture.
  const double scale = std::max(static_cast<double>(height) / static_cast<double>(pixels->height),
                                static_cast<double>(width) / static_cast<double>(pixels->width)) /
                       options.crop;
  const auto side = [&](int64_t from, int64_t least) {
    return std::max(least, static_cast<int64_t>(std::llround(static_cast<double>(from) * scale)));
  };
  auto whole = resized(*pixels, side(pixels->height, height), side(pixels->width, width));
  if (!whole) return in_file(std::move(whole.error()));
  const int64_t top = (whole->height - height) / 2, left = (whole->width - width) / 2, channels = whole->channels;
  Tensor result = Tensor::for_overwrite(
      DType::kF32, options.channels_last ? Shape{1, height, width, channels} : Shape{1, channels, height, width});
  const auto out = result.data<float>();
  const auto of_channel = [](const std::vector<double>& values, int64_t channel) {
    return values[values.size() == 1 ? 0 : static_cast<size_t>(channel)];
  };
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        const double value = whole->values[static_cast<size_t>(((y + top) * whole->width + x + left) * channels + c)];
        const int64_t index = options.channels_last ? (y * width + x) * channels + c : (c * height + y) * width + x;
        out[static_cast<size_t>(index)] =
            static_cast<float>((value - of_channel(options.subtract, c)) / of_channel(options.divide, c));
      }
    }
  }
  return result;
}

#endif

}  // namespace tenon::runtime
