#include "runtime/vm/arenas.h"

#include <fmt/format.h>

#include <utility>

namespace tenon::runtime {

Expected<Storage> Arenas::take(uint32_t function) {
  const uint64_t bytes = executable_.functions[function].arena_bytes;
  if (bytes == 0) return Storage();
  auto& idle = idle_[function];
  if (!idle.empty()) {
    Storage arena = std::move(idle.back());
    idle.pop_back();
    return arena;
  }
  Storage arena = Storage::allocate(bytes);
  if (!arena.memory) return error(fmt::format("not enough memory for an arena of {} bytes", bytes), executable_.name);
  return arena;
}

// An arena with a tensor that is still in use belongs to that tensor and is not reused.
void Arenas::give_back(uint32_t function, Storage arena) {
  if (arena.memory.use_count() == 1) idle_[function].push_back(std::move(arena));
}

}  // namespace tenon::runtime
