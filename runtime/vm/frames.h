// The registers of a run, and the frames of the functions that they belong to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/profile/profile.h"
#include "runtime/vm/arenas.h"
#include "runtime/vm/heap.h"
#include "runtime/vm/stack.h"
#include "runtime/vm/state.h"

namespace tenon::runtime {

inline Register register_of(uint32_t operand) { return operand & ~kLastUse; }

// The word of an operand of the frame whose registers begin at `base`. The caller owns it: it is taken from its
// register, or shared.
[[gnu::always_inline]] inline Word take(Word* base, uint32_t operand) {
  Word& slot = base[register_of(operand)];
  const Word word = slot;
  if (operand & kLastUse) slot = {};
  else Heap::retain(word);
  return word;
}

// The frames of the current stack.
class Frames {
 public:
  // `memory` records the arenas of frames.
  Frames(const Session::State& session, Heap& heap, MemoryRecord& memory);

  bool empty() const { return stack_.frames.empty(); }
  size_t depth() const { return stack_.frames.size(); }
  Frame& back() { return stack_.frames.back(); }
  const Frame& back() const { return stack_.frames.back(); }
  // The registers of the last frame.
  Word* registers() { return stack_.words.data() + back().base; }
  const Word& at(Register r) const { return stack_.words[back().base + r]; }
  void write(Register to, Word value);
  // Of all frames.
  std::span<const Word> live() const { return stack_.live(); }
  Storage arena_slot(const ArenaSlot& slot) { return stack_.arenas.back().part(slot.offset, slot.bytes); }
  void record_peak();
  // No limit of recursion while frames are left.
  void lift_limit() { is_limited_ = false; }
  // Goes on with another stack, and keeps this one there.
  void exchange(Stack& other) { std::swap(stack_, other); }

  // Makes room for the registers of the entry and returns them; they are filled before its frame begins.
  Expected<Word*> reserve_entry(const Words& entry);
  Status enter_entry(const Words& entry) { return enter(entry, nullptr, 0); }
  // Calls a function with the arguments in registers of the last frame; `closure`: the word of the closure, which the
  // caller owns until the callee's frame is made.
  Status call(const Words& callee, const Word* closure, std::span<const uint32_t> args,
              std::span<const uint32_t> results);
  // The same in place of the last frame. After an error that frame may have ended.
  Status tail_call(const Words& callee, const Word* closure, std::span<const uint32_t> args);
  // Ends the last frame; the values of these registers become the results of the call in the frame before it.
  Status leave(std::span<const uint32_t> values);
  // Ends all frames and empties the registers of the entry.
  void abandon(const Words& entry);

  // Errors about an operand.
  [[gnu::cold]] std::unexpected<Diagnostic> is_empty(uint32_t operand) const;
  [[gnu::cold]] std::unexpected<Diagnostic> is_not(uint32_t operand, std::string_view wanted) const;

 private:
  // Under a budget all tensors have memory of their own.
  bool has_arena(const Function& function) const { return function.arena_bytes != 0 && session_.options.budget == 0; }
  Status reserve(const Words& callee, size_t base);
  Status enter(const Words& callee, const uint32_t* results, uint32_t result_count);
  void leave();
  void clear(size_t base, size_t count);
  // Pushes the words that follow the parameters of a closure's function.
  void push_captures(const Words& callee, const Word& closure);

  bool is_limited_ = true;
  const Session::State& session_;
  Heap& heap_;
  MemoryRecord& memory_;
  Arenas arenas_;
  Stack stack_;
  uint64_t arena_live_ = 0;
  std::vector<Word> scratch_;
};

}  // namespace tenon::runtime
