// The first-fit allocator over live ranges.
#include "compiler/base/first_fit.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace tenon::compiler {

ArenaPlan first_fit(std::span<const LiveBuffer> buffers) {
  ArenaPlan plan{.offsets = std::vector<int64_t>(buffers.size())};
  uint32_t positions = 0;
  for (const LiveBuffer& buffer : buffers) positions = std::max(positions, buffer.last + 1);
  std::vector<int64_t> live(positions + 1);  // first the changes at each position, then their sums
  for (const LiveBuffer& buffer : buffers) {
    plan.total += buffer.bytes;
    live[buffer.first] += buffer.bytes;
    live[buffer.last + 1] -= buffer.bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  plan.peak = std::ranges::max(live);

  std::vector<uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](uint32_t i) { return buffers[i].bytes; });
  std::vector<std::vector<uint32_t>> placed(positions);  // by position: the buffers that are live there
  std::vector<uint32_t> seen(buffers.size(), UINT32_MAX);
  for (const uint32_t i : order) {
    const LiveBuffer& buffer = buffers[i];
    std::vector<std::pair<int64_t, int64_t>> taken;  // offset and end
    for (uint32_t position = buffer.first; position <= buffer.last; ++position) {
      for (const uint32_t other : placed[position]) {
        if (std::exchange(seen[other], i) == i) continue;
        taken.emplace_back(plan.offsets[other], plan.offsets[other] + buffers[other].bytes);
      }
      placed[position].push_back(i);
    }
    std::ranges::sort(taken);
    int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (begin - offset >= buffer.bytes) break;
      offset = std::max(offset, end);
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + buffer.bytes);
  }
  return plan;
}

}  // namespace tenon::compiler
