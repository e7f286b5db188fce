// Resize: the values of its attributes, the length of the result, and the input elements of each output element.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::runtime::reference {

inline constexpr std::array<std::string_view, 3> kResizeModes{"nearest", "linear", "cubic"};
inline constexpr std::array<std::string_view, 6> kResizeCoordinates{
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"};
inline constexpr std::array<std::string_view, 4> kResizeRoundings{"round_prefer_floor", "round_prefer_ceil", "floor",
                                                                  "ceil"};

inline bool is_one_of(std::string_view value, std::span<const std::string_view> values) {
  return std::ranges::find(values, value) != values.end();
}

// floor(length * scale), in f32, the type of scales.
inline int64_t resized_length(int64_t length, double scale) {
  return static_cast<int64_t>(std::floor(static_cast<float>(length) * static_cast<float>(scale)));
}

// The input elements of one output element along one axis, and their weights.
template <class T>
struct WeightedIndices {
  std::vector<int64_t> index;
  std::vector<T> weight;
};

template <class T>
std::array<T, 4> cubic_weights(T t, T a) {
  auto outer = [&](T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };  // 1 <= x <= 2
  auto inner = [&](T x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };        // 0 <= x <= 1
  return {outer(t + 1), inner(t), inner(1 - t), outer(2 - t)};
}

struct Resize {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool exclude_outside = false;
  bool antialias = false;  // where an axis shrinks, the linear and cubic weights are stretched by the same factor
};

// The input coordinate of output element `i`.
template <class T>
T coordinate(const Resize& r, int64_t i, int64_t in, int64_t out, T scale) {
  const T x = static_cast<T>(i), size = static_cast<T>(in), length = static_cast<T>(out);
  if (r.coordinates == "asymmetric") return x / scale;
  if (r.coordinates == "align_corners") return out == 1 ? T{0} : x * (size - 1) / (length - 1);
  if (r.coordinates == "pytorch_half_pixel" && out == 1) return T{0};
  if (r.coordinates == "tf_half_pixel_for_nn") return (x + T(0.5)) / scale;
  const T half = (x + T(0.5)) / scale - T(0.5);
  if (r.coordinates != "half_pixel_symmetric") return half;
  return size / 2 * (1 - length / (scale * size)) + half;
}

// The weights of all elements nearer to x than the support of the stretched weights; their number is the same for all
// x.
template <class T>
WeightedIndices<T> antialiased(const Resize& r, T x, int64_t in, T scale) {
  const T stretch = 1 / std::min(scale, T{1}), support = r.mode == "linear" ? T{1} : T{2};
  const auto half = static_cast<int64_t>(std::ceil(support * stretch));
  const auto a = static_cast<T>(r.cubic);
  const auto weight = [&](T distance) {
    const T d = std::abs(distance) / stretch;
    if (d >= support) return T{0};
    if (r.mode == "linear") return 1 - d;
    return d < 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  };
  WeightedIndices<T> sources;
  T sum = 0;
  for (int64_t k = 1 - half; k <= half; ++k) {
    const T position = std::floor(x) + static_cast<T>(k);
    const bool outside = position < 0 || position > static_cast<T>(in - 1);
    sources.index.push_back(static_cast<int64_t>(std::clamp<T>(position, 0, static_cast<T>(in - 1))));
    sources.weight.push_back(r.exclude_outside && outside ? T{0} : weight(x - position));
    sum += sources.weight.back();
  }
  for (T& value : sources.weight) value /= sum;
  return sources;
}

template <class T>
WeightedIndices<T> weighted_indices(const Resize& r, int64_t i, int64_t in, int64_t out, T scale) {
  const T x = coordinate(r, i, in, out, scale);
  auto inside = [&](T position) { return static_cast<int64_t>(std::clamp<T>(position, 0, static_cast<T>(in - 1))); };
  if (r.mode == "nearest") {
    const T position = r.nearest == "floor"               ? std::floor(x)
                       : r.nearest == "ceil"              ? std::ceil(x)
                       : r.nearest == "round_prefer_ceil" ? std::floor(x + T(0.5))
                                                          : std::ceil(x - T(0.5));
    return {{inside(position)}, {T{1}}};
  }
  if (r.antialias) return antialiased(r, x, in, scale);
  const T first = std::floor(x), t = x - first;
  if (r.mode == "linear") return {{inside(first), inside(first + 1)}, {1 - t, t}};
  const auto weights = cubic_weights(t, static_cast<T>(r.cubic));
  WeightedIndices<T> sources;
  T sum = 0;
  for (int k = 0; k < 4; ++k) {
    const T position = first + static_cast<T>(k - 1);
    const bool outside = position < 0 || position > static_cast<T>(in - 1);
    const T weight = r.exclude_outside && outside ? T{0} : weights[static_cast<size_t>(k)];
    sources.index.push_back(inside(position));
    sources.weight.push_back(weight);
    sum += weight;
  }
  if (r.exclude_outside) {
    for (T& weight : sources.weight) weight /= sum;
  }
  return sources;
}

}  // namespace tenon::runtime::reference
