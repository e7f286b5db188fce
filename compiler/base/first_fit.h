// First fit by decreasing size: offsets in one arena for buffers with given live ranges.
//
// The largest buffer is placed first (of equal sizes the earlier in the list), each at the lowest offset that is free
// for its whole live range. The memory plan of the IR, the arena of lowered code and the workspace of an accelerator
// program use this allocator.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::compiler {

// Offsets in an arena are multiples of this if all sizes are.
inline constexpr int64_t kMemoryAlignment = 64;
// `bytes`, 0 .. INT64_MAX - kMemoryAlignment, rounded up; an empty tensor has an offset of its own too.
constexpr int64_t aligned_bytes(int64_t bytes) {
  const int64_t units = (bytes + kMemoryAlignment - 1) / kMemoryAlignment;
  return (units == 0 ? 1 : units) * kMemoryAlignment;
}

struct LiveBuffer {
  uint32_t first = 0, last = 0;  // live range: positions in a program, both included
  int64_t bytes = 0;             // more than 0
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // of the buffers, in the order of the list
  int64_t bytes = 0;             // size of the arena
  int64_t peak = 0;              // the most bytes that are live at once: no arena is smaller
  int64_t total = 0;             // size of an arena without reuse
};

ArenaPlan first_fit(std::span<const LiveBuffer> buffers);

}  // namespace tenon::compiler
