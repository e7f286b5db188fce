#include "runtime/executable/verify_arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "runtime/executable/liveness.h"

namespace tenon::runtime {

std::string check_arena(const Function& function) {
  const bool planned = std::ranges::any_of(function.code, [](const Instruction& instruction) {
    const auto* call = std::get_if<CallNative>(&instruction.operation);
    return call && !call->slots.empty();
  });
  if (!planned) {
    return function.arena_bytes == 0
               ? ""
               : fmt::format("it has an arena of {} bytes, and no result is in it", function.arena_bytes);
  }
  std::map<uint64_t, uint64_t> taken;          // slots in use: offset and end
  std::multimap<uint32_t, uint64_t> last_use;  // offsets of slots in use, by the last instruction that reads them
  for (const ResultRange& range : result_ranges(function)) {
    const auto& call = std::get<CallNative>(function.code[range.call].operation);
    if (call.slots.empty() || call.slots[range.result].bytes == 0) continue;
    const auto [offset, bytes] = call.slots[range.result];
    const std::string shown = fmt::format("instruction {}: the arena slot of result {}", range.call, range.result);
    if (offset % kArenaAlignment != 0 || bytes > function.arena_bytes || offset > function.arena_bytes - bytes)
      return fmt::format("{} is {} bytes at {} in an arena of {}", shown, bytes, offset, function.arena_bytes);
    if (range.escapes) return fmt::format("{} may outlive the call", shown);
    while (!last_use.empty() && last_use.begin()->first < range.call) {
      taken.erase(last_use.begin()->second);
      last_use.erase(last_use.begin());
    }
    const auto next = taken.lower_bound(offset);
    if ((next != taken.end() && next->first < offset + bytes) ||
        (next != taken.begin() && std::prev(next)->second > offset))
      return fmt::format("{} is in use", shown);
    taken.emplace(offset, offset + bytes);
    last_use.emplace(range.last_use, offset);
  }
  return {};
}

}  // namespace tenon::runtime
