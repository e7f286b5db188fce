// The words of resize, and the length of what is resized.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

namespace tenon::runtime::reference {

inline constexpr std::array<std::string_view, 3> kResizeModes{"nearest", "linear", "cubic"};
inline constexpr std::array<std::string_view, 5> kResizeCoordinates{
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"};
inline constexpr std::array<std::string_view, 4> kResizeRoundings{"round_prefer_floor", "round_prefer_ceil", "floor",
                                                                  "ceil"};

inline bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// floor(length * scale), in f32, which scales come from.
inline int64_t resized_length(int64_t length, double scale) {
  return static_cast<int64_t>(std::floor(static_cast<float>(length) * static_cast<float>(scale)));
}

}  // namespace tenon::runtime::reference
