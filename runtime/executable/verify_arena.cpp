#include "runtime/executable/verify_arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "runtime/executable/liveness.h"

namespace tenon::runtime {

std::string check_arena(const Function& function, std::span<const NativeCode> natives) {
  const bool planned = std::ranges::any_of(function.code, [](const Instruction& instruction) {
    const auto* call = std::get_if<CallNative>(&instruction.operation);
    return call && !call->slots.empty();
  });
  if (!planned) {
    return function.arena_bytes == 0
               ? ""
               : fmt::format("it has an arena of {} bytes, and no result is in it", function.arena_bytes);
  }
  struct Taken {
    uint64_t end = 0;
    size_t range = 0;
  };
  std::map<uint64_t, Taken> taken;                                // slots in use, by offset
  std::multimap<uint32_t, std::pair<uint64_t, size_t>> last_use;  // by the last instruction that reads them
  const std::vector<ResultRange> ranges = result_ranges(function, natives);
  for (size_t i = 0; i < ranges.size(); ++i) {
    const ResultRange& range = ranges[i];
    const auto& call = std::get<CallNative>(function.code[range.call].operation);
    if (call.slots.empty() || call.slots[range.result].bytes == 0) continue;
    const auto [offset, bytes] = call.slots[range.result];
    const std::string shown = fmt::format("instruction {}: the arena slot of result {}", range.call, range.result);
    if (offset % kArenaAlignment != 0 || bytes > function.arena_bytes || offset > function.arena_bytes - bytes)
      return fmt::format("{} is {} bytes at {} in an arena of {}", shown, bytes, offset, function.arena_bytes);
    if (range.escapes) return fmt::format("{} may outlive the call", shown);
    while (!last_use.empty() && last_use.begin()->first < range.call) {
      const auto [begin, owner] = last_use.begin()->second;
      if (const auto slot = taken.find(begin); slot != taken.end() && slot->second.range == owner) taken.erase(slot);
      last_use.erase(last_use.begin());
    }
    if (const auto slot = taken.find(offset);
        slot != taken.end() && range.replaces == slot->second.range && slot->second.end == offset + bytes) {
      slot->second.range = i;
      last_use.emplace(range.last_use, std::pair(offset, i));
      continue;
    }
    const auto next = taken.lower_bound(offset);
    if ((next != taken.end() && next->first < offset + bytes) ||
        (next != taken.begin() && std::prev(next)->second.end > offset))
      return fmt::format("{} is in use", shown);
    taken.emplace(offset, Taken{offset + bytes, i});
    last_use.emplace(range.last_use, std::pair(offset, i));
  }
  return {};
}

}  // namespace tenon::runtime
