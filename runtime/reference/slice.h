// How a slice's bounds are read: as ONNX and NumPy do.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::runtime::reference {

// Where a slice over `size` elements starts: negative counts from the end, what lies beyond is moved to the border.
inline int64_t slice_begin(int64_t size, int64_t begin, int64_t step) {
  if (begin < 0) begin = begin < -size ? -1 : begin + size;
  return step > 0 ? std::clamp<int64_t>(begin, 0, size) : std::clamp<int64_t>(begin, -1, size - 1);
}

// How many elements it has; step is not 0.
inline int64_t slice_length(int64_t size, int64_t begin, int64_t end, int64_t step) {
  const int64_t first = slice_begin(size, begin, step);
  if (end < 0) end = end < -size ? -1 : end + size;
  if (step > 0) {
    const int64_t room = std::clamp<int64_t>(end, 0, size) - first;
    return room <= 0 ? 0 : (room - 1) / step + 1;
  }
  const int64_t room = first - std::clamp<int64_t>(end, -1, size - 1);
  return room <= 0 ? 0 : (step == INT64_MIN ? 1 : (room - 1) / -step + 1);
}

}  // namespace tenon::runtime::reference
