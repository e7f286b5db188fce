#include "runtime/vm/stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "support/try.h"

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

Expected<Tensor> Frame::read(Register from) const {
  if (!registers[from]) return error(fmt::format("register {} is empty", from));
  return registers[from];
}

Status Stack::enter(uint32_t index, std::span<const Tensor> args, const Registers* results) {
  const Function& function = executable_.functions[index];
  registers_ += function.registers + 1;
  if (registers_ > max_registers_) {
    if (frames_.empty()) return error("the entry needs more registers than the limit", executable_.name);
    return error(fmt::format("the calls nest too deep: {} frames with {} registers", frames_.size(), registers_), {},
                 "a recursion without end, or a larger max_stack is needed");
  }
  TENON_TRY_ASSIGN(arena, arenas_.take(index));
  memory_.arena_bytes += function.arena_bytes;
  grow(function.arena_bytes);
  frames_.push_back({index, results, std::vector<Tensor>(function.registers), std::move(*arena), 0});
  std::ranges::copy(args, top().registers.begin());
  return {};
}

void Stack::leave() {
  const Function& function = executable_.functions[top().function];
  std::ranges::for_each(top().registers, [&](Tensor& value) { forget(value); });
  live_bytes_ -= function.arena_bytes;
  registers_ -= function.registers + 1;
  arenas_.give_back(top().function, std::move(top().arena));
  frames_.pop_back();
}

void Stack::write(Register to, Tensor value) {
  forget(top().registers[to]);
  top().registers[to] = std::move(value);
}

void Stack::count_result(const Tensor& result) {
  if (!result || !result.alone()) return;
  ++memory_.allocations;
  grow(result.bytes().size());
}

void Stack::grow(uint64_t bytes) { memory_.peak_bytes = std::max(memory_.peak_bytes, live_bytes_ += bytes); }

void Stack::forget(Tensor& value) {
  if (value && value.alone()) live_bytes_ -= std::min<uint64_t>(live_bytes_, value.bytes().size());
  value = {};
}

}  // namespace tenon::runtime
