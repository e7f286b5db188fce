// Pictures in files as tensors of models: decoded, resized, cropped, normalized.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"

namespace tenon::runtime {

struct PictureOptions {
  int64_t height = 0, width = 0;  // of the result; 0: the picture's own
  // The share of the resized picture that the result shows, as 0.875: the picture is resized, with its proportions, so
  // that the result fills this share of its shorter side, and the center is cut out.
  double crop = 1;
  bool gray = false;           // one channel; else red, green and blue
  bool channels_last = false;  // (1, height, width, channels); else (1, channels, height, width)
  // A value of 0 .. 255 becomes (value - subtract) / divide; one number, or one for each channel.
  std::vector<double> subtract = {0}, divide = {1};
};

// The f32 tensor of a PNG, JPEG, BMP, GIF, TGA, PSD or PNM file's bytes. Resizing is bilinear, over the area of the
// source that a pixel covers where the result is smaller, as PIL's. Errors: bytes that are no picture, a picture of
// more than 2^28 values, options that do not fit; a build without stb.
Expected<Tensor> decode_picture(std::span<const std::byte> bytes, const PictureOptions& options,
                                std::string_view where);

}  // namespace tenon::runtime
