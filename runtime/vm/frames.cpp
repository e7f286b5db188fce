#include "runtime/vm/frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "support/try.h"

namespace tenon::runtime {
namespace {

constexpr size_t kFirstWords = 1024;

}  // namespace

Frames::Frames(const Session::State& session, Heap& heap, MemoryRecord& memory)
    : session_(session), heap_(heap), memory_(memory), arenas_(session.executable) {}

void Frames::write(Register to, Word value) {
  Word& slot = stack_.words[back().base + to];
  const Word before = slot;
  slot = value;
  heap_.release(before);
}

void Frames::record_peak() { memory_.peak_bytes = std::max(memory_.peak_bytes, arena_live_ + heap_.tensor_bytes()); }

std::unexpected<Diagnostic> Frames::is_empty(uint32_t operand) const {
  return error(fmt::format("register {} is empty", register_of(operand)));
}
std::unexpected<Diagnostic> Frames::is_not(uint32_t operand, std::string_view wanted) const {
  const Word& word = at(register_of(operand));
  if (word.tag == Tag::kEmpty) return is_empty(operand);
  return error(fmt::format("register {} has {}, must have {}", register_of(operand), describe(word.tag), wanted));
}

Status Frames::reserve(const Words& callee, size_t base) {
  if (stack_.frames.empty()) is_limited_ = true;
  const uint64_t needed = base + callee.function->registers,
                 limit = is_limited_ ? session_.options.max_stack : UINT64_MAX;
  if (needed + stack_.frames.size() + 1 > limit) {
    if (stack_.frames.empty()) return error("the entry needs more registers than the limit", session_.executable.name);
    return error(fmt::format("the calls nest too deep: {} frames with {} registers", stack_.frames.size(), stack_.top),
                 {}, "a recursion without end, or a larger max_stack is needed");
  }
  if (needed > stack_.words.size()) {
    try {
      stack_.words.resize(std::max({needed, uint64_t{2} * stack_.words.size(), uint64_t{kFirstWords}}));
    } catch (const std::bad_alloc&) {
      return error(fmt::format("not enough memory for {} registers", needed));
    }
  }
  return {};
}

Expected<Word*> Frames::reserve_entry(const Words& entry) {
  TENON_TRY(reserve(entry, 0));
  return stack_.words.data();
}

// The frame of a callee whose first registers are filled; its space is reserved.
Status Frames::enter(const Words& callee, const uint32_t* results, uint32_t result_count) {
  const size_t base = stack_.top;
  if (has_arena(*callee.function)) {
    TENON_TRY_ASSIGN(arena, arenas_.take(callee.index));
    stack_.arenas.push_back(std::move(*arena));
    memory_.arena_bytes += callee.function->arena_bytes;
    arena_live_ += callee.function->arena_bytes;
    record_peak();
  }
  stack_.top = base + callee.function->registers;
  stack_.frames.push_back({&callee, base, callee.code.data(), results, result_count});
  return {};
}

void Frames::clear(size_t base, size_t count) {
  for (Word& word : std::span(stack_.words).subspan(base, count)) {
    heap_.release(word);
    word = {};
  }
}

void Frames::leave() {
  const Frame& frame = stack_.frames.back();
  const Function& function = *frame.words->function;
  clear(frame.base, function.registers);
  stack_.top = frame.base;
  if (has_arena(function)) {
    arena_live_ -= function.arena_bytes;
    arenas_.give_back(frame.words->index, std::move(stack_.arenas.back()));
    stack_.arenas.pop_back();
  }
  stack_.frames.pop_back();
}

Status Frames::leave(std::span<const uint32_t> values) {
  Word* base = registers();
  for (const uint32_t r : values) {
    if (base[r].tag == Tag::kEmpty) return is_empty(r);
  }
  const uint32_t* results = back().results;
  if (values.size() == 1) {
    const Word result = std::exchange(base[values[0]], Word());
    leave();
    write(results[0], result);
    return {};
  }
  scratch_.clear();
  for (const uint32_t r : values) {
    scratch_.push_back(base[r]);
    Heap::retain(base[r]);
  }
  leave();
  for (size_t i = 0; i < scratch_.size(); ++i) write(results[i], scratch_[i]);
  return {};
}

void Frames::abandon(const Words& entry) {
  while (!stack_.frames.empty()) leave();
  clear(0, std::min<size_t>(stack_.words.size(), entry.function->registers));
}

Status Frames::call(const Words& callee, const Word* closure, std::span<const uint32_t> args,
                    std::span<const uint32_t> results) {
  const size_t base = stack_.top, caller = back().base;
  TENON_TRY(reserve(callee, base));
  Word* from = stack_.words.data() + caller;
  Word* to = stack_.words.data() + base;
  for (size_t i = 0; i < args.size(); ++i) {
    to[i] = take(from, args[i]);
    if (to[i].tag == Tag::kEmpty) {
      clear(base, i);
      return is_empty(args[i]);
    }
  }
  if (closure) {
    const uint32_t captures = callee.function->captures;
    for (uint32_t i = 0; i < captures; ++i) {
      to[args.size() + i] = closure->object->words()[i];
      Heap::retain(to[args.size() + i]);
    }
    if (callee.function->self) {
      to[args.size() + captures] = *closure;
      Heap::retain(*closure);
    }
  }
  if (Status status = enter(callee, results.data(), static_cast<uint32_t>(results.size())); !status) {
    clear(base, callee.function->filled());
    return status;
  }
  return {};
}

Status Frames::tail_call(const Words& callee, const Word* closure, std::span<const uint32_t> args) {
  Frame& frame = back();
  Word* from = stack_.words.data() + frame.base;
  for (const uint32_t arg : args) {
    if (from[arg].tag == Tag::kEmpty) return is_empty(arg);
  }
  scratch_.clear();
  for (const uint32_t arg : args) {
    scratch_.push_back(from[arg]);
    Heap::retain(scratch_.back());
  }
  if (closure) push_captures(callee, *closure);
  if (Status status = reserve(callee, frame.base); !status) {
    for (const Word& word : scratch_) heap_.release(word);
    return status;
  }
  const uint32_t* results = frame.results;
  const uint32_t result_count = frame.result_count;
  const Words& caller = *frame.words;
  if (!has_arena(*callee.function) && !has_arena(*caller.function)) {
    clear(frame.base, caller.function->registers);
    frame.words = &callee;
    frame.next = callee.code.data();
    stack_.top = frame.base + callee.function->registers;
    std::ranges::copy(scratch_, stack_.words.begin() + static_cast<ptrdiff_t>(frame.base));
    return {};
  }
  leave();
  std::ranges::copy(scratch_, stack_.words.begin() + static_cast<ptrdiff_t>(stack_.top));
  Status status = enter(callee, results, result_count);
  if (!status) clear(stack_.top, scratch_.size());
  return status;
}

void Frames::push_captures(const Words& callee, const Word& closure) {
  for (uint32_t i = 0; i < callee.function->captures; ++i) {
    scratch_.push_back(closure.object->words()[i]);
    Heap::retain(scratch_.back());
  }
  if (callee.function->self) {
    scratch_.push_back(closure);
    Heap::retain(closure);
  }
}

}  // namespace tenon::runtime
