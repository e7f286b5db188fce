// The bounds of slices, as in ONNX: those of NumPy, but that a begin before the first element is the first element
// where the step is negative, and not in front of it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::runtime::reference {

// The first index of a slice over `size` elements: negative counts from the end, and out of bounds is clamped.
inline int64_t slice_begin(int64_t size, int64_t begin, int64_t step) {
  if (begin < 0) begin = begin < -size ? 0 : begin + size;
  return std::min(begin, step > 0 ? size : size - 1);
}

// The number of elements of the slice; step is not 0.
inline int64_t slice_length(int64_t size, int64_t begin, int64_t end, int64_t step) {
  const int64_t first = slice_begin(size, begin, step);
  if (end < 0) end = end < -size ? -1 : end + size;
  if (step > 0) {
    const int64_t distance = std::clamp<int64_t>(end, 0, size) - first;
    return distance <= 0 ? 0 : (distance - 1) / step + 1;
  }
  const int64_t distance = first - std::clamp<int64_t>(end, -1, size - 1);
  return distance <= 0 ? 0 : (step == INT64_MIN ? 1 : (distance - 1) / -step + 1);
}

}  // namespace tenon::runtime::reference
