// Executes the entry function of a session's executable, instruction by instruction.
#include "runtime/vm/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "runtime/vm/scalar.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

constexpr uint64_t kSlice = 1 << 14;                 // instructions between two checks of the limits
constexpr size_t kMaxCallRecords = size_t{1} << 20;  // of a profile; a loop would fill the memory with them
constexpr size_t kFirstWords = 1024;
const Tensor kReleasedTensor;

Register register_of(uint32_t operand) { return operand & ~kLastUse; }

}  // namespace

Run::Run(Session::State& session)
    : session_(session),
      executable_(session.executable),
      heap_(session.options.max_bytes),
      arenas_(session.executable) {
  machine_.run = this;
  machine_.constants = reinterpret_cast<const tn_word*>(session.constants.data());
  machine_.step = Machine::step_now;
  machine_.spend = Machine::spend_now;
  machine_.release = Machine::release_now;
  machine_.target = Machine::target_now;
}

Expected<std::vector<Value>> Run::run(std::span<const Value> inputs) {
  finished_tensors_ = nullptr;
  TENON_TRY(run_entry(inputs));
  return std::move(finished_);
}

Status Run::run(std::span<const Tensor> inputs, std::vector<Tensor>& results) {
  finished_tensors_ = &results;
  return run_entry(inputs);
}

template <class Input>
Status Run::run_entry(std::span<const Input> inputs) {
  const SessionOptions& options = session_.options;
  left_ = options.max_steps == 0 ? UINT64_MAX : options.max_steps;
  machine_.budget = 1;  // the first instruction checks the limits
  ++left_;
  if (options.max_steps == 0) left_ = UINT64_MAX;
  deadline_ = std::chrono::steady_clock::now() + options.max_time;
  profile_ = {};
  heap_.reset();
  finished_.clear();
  now_ = nullptr;
  located_ = false;
  const Words& main = session_.code[executable_.entry];
  Status status = reserve(main, 0);
  if (!status) return status;
  for (size_t i = 0; i < inputs.size() && status; ++i) {
    auto word = import(inputs[i]);
    if (word) words_[i] = *word;
    else status = std::unexpected(std::move(word.error()));
  }
  if (finished_tensors_) {
    finished_tensors_->resize(main.function->results.size());
    for (Tensor& result : *finished_tensors_) result = kReleasedTensor;  // leaves the shape its capacity
  }
  if (status) status = enter(main, nullptr, 0);
  if (status) status = options.hook ? loop<After::kHook>(frames_.back().next) : loop<After::kNext>(frames_.back().next);
  if (!status && !located_ && !frames_.empty()) {
    const Words& words = *frames_.back().words;
    // A frame that has just been entered or left has executed nothing.
    const std::less<> before;
    const bool is_inside =
        now_ && !before(now_, words.code.data()) && before(now_, words.code.data() + words.code.size());
    const uint32_t index = is_inside ? words.origin[static_cast<size_t>(now_ - words.code.data())] : 0;
    status.error() = located(words, index, std::move(status.error()));
  }
  abandon_started();
  while (!frames_.empty()) leave_frame();
  clear(0, std::min<size_t>(words_.size(), main.function->registers));
  heap_.collect({});
  if (!status) return status;
  ++profile_.runs;
  profile_.memory.allocations = heap_.allocations();
  return {};
}

// Messages.

Diagnostic Run::located(const Words& words, uint32_t index, Diagnostic diagnostic) const {
  const std::string& layer = words.function->code[index].layer;
  std::string location =
      fmt::format("{}: function '{}', instruction {}", executable_.name, words.function->name, index);
  if (!layer.empty()) location += fmt::format(" ({})", layer);
  diagnostic.where = diagnostic.where.empty() ? location : fmt::format("{}: {}", location, diagnostic.where);
  return diagnostic;
}
std::unexpected<Diagnostic> Run::empty(Register from) const {
  return error(fmt::format("register {} is empty", register_of(from)));
}
std::unexpected<Diagnostic> Run::wrong(Register from, std::string_view wanted) const {
  const Word& word = at(register_of(from));
  if (word.tag == Tag::kEmpty) return empty(from);
  return error(fmt::format("register {} has {}, must have {}", register_of(from), describe(word.tag), wanted));
}
std::unexpected<Diagnostic> Run::no_memory() const {
  if (session_.options.max_bytes == 0) return error("not enough memory for the values of the run");
  return error(fmt::format("the values of the run take more than {} bytes", session_.options.max_bytes), {},
               "a recursion without end, or a larger max_bytes is needed");
}

// Frames.

Status Run::reserve(const Words& callee, size_t base) {
  const uint64_t needed = base + callee.function->registers, limit = session_.options.max_stack;
  if (needed + frames_.size() + 1 > limit) {
    if (frames_.empty()) return error("the entry needs more registers than the limit", executable_.name);
    return error(fmt::format("the calls nest too deep: {} frames with {} registers", frames_.size(), top_), {},
                 "a recursion without end, or a larger max_stack is needed");
  }
  if (needed > words_.size()) {
    try {
      words_.resize(std::max({needed, uint64_t{2} * words_.size(), uint64_t{kFirstWords}}));
    } catch (const std::bad_alloc&) {
      return error(fmt::format("not enough memory for {} registers", needed));
    }
  }
  return {};
}

// The frame of a callee whose first registers are filled; its space is reserved.
Status Run::enter(const Words& callee, const uint32_t* results, uint32_t result_count) {
  const size_t base = top_;
  if (callee.function->arena_bytes != 0) {
    TENON_TRY_ASSIGN(arena, arenas_.take(callee.index));
    frame_arenas_.push_back(std::move(*arena));
    profile_.memory.arena_bytes += callee.function->arena_bytes;
    arena_live_ += callee.function->arena_bytes;
    grow();
  }
  top_ = base + callee.function->registers;
  frames_.push_back({&callee, base, callee.code.data(), results, result_count});
  return {};
}

void Run::clear(size_t base, size_t count) {
  for (Word& word : std::span(words_).subspan(base, count)) {
    heap_.release(word);
    word = {};
  }
}

void Run::leave_frame() {
  const Frame& frame = frames_.back();
  const Function& function = *frame.words->function;
  clear(frame.base, function.registers);
  top_ = frame.base;
  if (function.arena_bytes != 0) {
    arena_live_ -= function.arena_bytes;
    arenas_.give_back(frame.words->index, std::move(frame_arenas_.back()));
    frame_arenas_.pop_back();
  }
  frames_.pop_back();
}

void Run::grow() {
  profile_.memory.peak_bytes = std::max(profile_.memory.peak_bytes, arena_live_ + heap_.tensor_bytes());
}

// The limits of a run, checked after each slice of instructions.
Status Run::refill() {
  const SessionOptions& options = session_.options;
  if (--left_ == 0) return error(fmt::format("the run takes more than {} instructions", options.max_steps));
  if (options.cancel && options.cancel->load(std::memory_order_relaxed)) return error("the run was cancelled");
  if (options.max_time.count() > 0 && std::chrono::steady_clock::now() > deadline_) {
    return error(fmt::format("the run takes more than {} ms",
                             std::chrono::duration_cast<std::chrono::milliseconds>(options.max_time).count()));
  }
  machine_.budget = std::min(left_, kSlice);
  left_ -= machine_.budget - 1;
  return {};
}

void Run::write(Register to, Word value) {
  Word& slot = words_[frames_.back().base + to];
  const Word before = slot;
  slot = value;
  heap_.release(before);
}

// Reads and moves.

namespace {

// The word of an operand, which the caller owns now: taken from its register, or shared.
Word take(Word* base, uint32_t operand) {
  Word& slot = base[register_of(operand)];
  const Word word = slot;
  if (operand & kLastUse) slot = {};
  else Heap::retain(word);
  return word;
}

}  // namespace

// Calls a function with the arguments in registers of the current frame; `closure`: the word of the closure, which the
// caller owns until the callee's frame is made.
Status Run::call(uint32_t function, const Word* closure, const uint32_t* args, uint32_t count, const uint32_t* results,
                 uint32_t result_count) {
  const Words& callee = session_.code[function];
  const size_t base = top_, caller = frames_.back().base;
  TENON_TRY(reserve(callee, base));
  Word* from = words_.data() + caller;
  Word* to = words_.data() + base;
  for (uint32_t i = 0; i < count; ++i) {
    to[i] = take(from, args[i]);
    if (to[i].tag == Tag::kEmpty) {
      const uint32_t missing = args[i];
      clear(base, i);
      return empty(missing);
    }
  }
  if (closure) {
    const uint32_t captures = callee.function->captures;
    for (uint32_t i = 0; i < captures; ++i) {
      to[count + i] = closure->object->words()[i];
      Heap::retain(to[count + i]);
    }
    if (callee.function->self) {
      to[count + captures] = *closure;
      Heap::retain(*closure);
    }
  }
  if (Status status = enter(callee, results, result_count); !status) {
    clear(base, callee.function->filled());
    return status;
  }
  return {};
}

Status Run::tail_call(uint32_t function, const Word* closure, const uint32_t* args, uint32_t count) {
  const Words& callee = session_.code[function];
  Frame& frame = frames_.back();
  Word* from = words_.data() + frame.base;
  for (uint32_t i = 0; i < count; ++i) {
    if (from[args[i]].tag == Tag::kEmpty) return empty(args[i]);
  }
  scratch_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    scratch_.push_back(from[args[i]]);
    Heap::retain(scratch_.back());
  }
  if (closure) {
    for (uint32_t i = 0; i < callee.function->captures; ++i) {
      scratch_.push_back(closure->object->words()[i]);
      Heap::retain(scratch_.back());
    }
    if (callee.function->self) {
      scratch_.push_back(*closure);
      Heap::retain(*closure);
    }
  }
  const auto drop = [&] {
    for (const Word& word : scratch_) heap_.release(word);
  };
  if (Status status = reserve(callee, frame.base); !status) {
    drop();
    return status;
  }
  const uint32_t* results = frame.results;
  const uint32_t result_count = frame.result_count;
  const Words& caller = *frame.words;
  if (callee.function->arena_bytes == 0 && caller.function->arena_bytes == 0) {
    clear(frame.base, caller.function->registers);
    frame.words = &callee;
    frame.next = callee.code.data();
    top_ = frame.base + callee.function->registers;
    std::ranges::copy(scratch_, words_.begin() + static_cast<ptrdiff_t>(frame.base));
    return {};
  }
  leave_frame();
  std::ranges::copy(scratch_, words_.begin() + static_cast<ptrdiff_t>(top_));
  if (Status status = enter(callee, results, result_count); !status) {
    clear(top_, scratch_.size());
    now_ = nullptr;
    return std::unexpected(std::move(status.error()));
  }
  return {};
}

// The entry returns.
Status Run::finish(const uint32_t* values, uint32_t count) {
  if (finished_tensors_) return finish_tensors(values, count);
  Given made;
  for (uint32_t i = 0; i < count; ++i) {
    const Word& word = at(values[i]);
    if (word.tag == Tag::kEmpty) return empty(values[i]);
    const Port& port = executable_.main().results[i];
    Value value = give(word, made);
    if (port.is_tensor() && !port.accepts(value.tensor()))
      return error(fmt::format("result {} became {}", to_string(port), describe(executable_, value)));
    finished_.push_back(std::move(value));
  }
  return {};
}

Status Run::finish_tensors(const uint32_t* values, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const Word& word = at(values[i]);
    if (word.tag == Tag::kEmpty) return empty(values[i]);
    const Port& port = executable_.main().results[i];
    if (word.tag == Tag::kTensor || (word.tag == Tag::kScalar && word.dtype != kUnknownSize)) {
      Tensor& result = (*finished_tensors_)[i];
      if (word.tag == Tag::kTensor) result = static_cast<const TensorObject*>(word.object)->tensor;
      else result = *tensor(values[i]);
      if (!port.is_tensor() || port.accepts(result)) continue;
    }
    Given made;
    const std::string found = describe(executable_, give(word, made));
    if (port.is_tensor()) return error(fmt::format("result {} became {}", to_string(port), found));
    return error(fmt::format("result '{}' is {}, not a tensor", port.name, found));
  }
  return {};
}

Status Run::show(const Words& words, uint32_t index) {
  Status status =
      session_.options.hook({words.function, index, &words.function->code[index], args_, results_, probes_});
  args_.clear();
  results_.clear();
  probes_.clear();
  // The instruction may have left its frame.
  if (!status) {
    status.error() = located(words, index, std::move(status.error()));
    located_ = true;
  }
  return status;
}

template <Run::After after>
Status Run::loop(const uint32_t* from) {
  constexpr bool hooked = after == After::kHook;
  const uint32_t* next = from;
  Word* base = words_.data() + frames_.back().base;
  // After a frame was entered or left.
  const auto load = [&]() -> Status {
    next = frames_.back().next;
    base = words_.data() + frames_.back().base;
    return after == After::kNext && frames_.back().words->compiled ? run_compiled(next) : Status();
  };
  const auto set = [&](uint32_t to, Word value) {
    const Word before = base[to];
    base[to] = value;
    heap_.release(before);
  };
  if constexpr (after == After::kNext) TENON_TRY(load());
  for (;;) {
    const uint32_t* op = next;
    if constexpr (after != After::kEnd) {
      if (--machine_.budget == 0) [[unlikely]] {
        now_ = op;
        TENON_TRY(refill());
      }
    }
    [[maybe_unused]] const Words* words = hooked ? frames_.back().words : nullptr;
    now_ = op;
    const uint32_t count = *op >> 8;
    switch (static_cast<Opcode>(*op & 0xff)) {
      case Opcode::kOther:
        next = op + 2;
        TENON_TRY(other(op[1]));
        break;
      case Opcode::kMove: {
        next = op + 3;
        const Word word = take(base, op[2]);
        if (word.tag == Tag::kEmpty) return empty(op[2]);
        set(op[1], word);
        break;
      }
      case Opcode::kKill:
        next = op + 1 + count;
        for (const uint32_t r : std::span(op + 1, count)) set(r, {});
        break;
      case Opcode::kConstant:
        next = op + 3;
        set(op[1], session_.constants[op[2]]);
        break;
      case Opcode::kScalar: {
        next = op + 4;
        const auto scalar_op = static_cast<ScalarOp>(count & 0xff);
        const auto dtype = static_cast<DType>(count >> 8);
        Word& a = base[register_of(op[2])];
        Word& b = base[register_of(op[3])];
        for (const uint32_t i : {2, 3}) {
          if (base[register_of(op[i])].is_scalar(dtype)) [[likely]]
            continue;
          return wrong(op[i], fmt::format("a scalar of {}", name(dtype)));
        }
        Word result;
        if (!compute_scalar(scalar_op, dtype, a, b, result))
          return error(fmt::format("{}: division by zero", name(scalar_op)));
        if (op[2] & kLastUse) a = {};
        if (op[3] & kLastUse) b = {};
        set(op[1], result);
        break;
      }
      case Opcode::kJump: next = frames_.back().words->code.data() + op[1]; break;
      case Opcode::kBranch: {
        next = op + 3;
        const Word& condition = base[op[1]];
        if (condition.is_scalar(DType::kBool)) [[likely]] {
          if ((condition.bits & 0xff) == 0) next = frames_.back().words->code.data() + op[2];
          break;
        }
        TENON_TRY_ASSIGN(goes_on, target(op));
        next = frames_.back().words->code.data() + *goes_on;
        break;
      }
      case Opcode::kSwitch: {
        TENON_TRY_ASSIGN(goes_on, target(op));
        next = frames_.back().words->code.data() + *goes_on;
        break;
      }
      case Opcode::kConstruct: {
        next = op + 4 + count;
        Word word(Tag::kConstructor, 0, op[3]);
        if (count == 0) {
          word.bits = op[2];
        } else {
          for (const uint32_t field : std::span(op + 4, count)) {
            if (base[register_of(field)].tag == Tag::kEmpty) return empty(field);
          }
          word.tag = Tag::kCell;
          word.object = heap_.make(Tag::kCell, op[2], count);
          if (!word.object) return no_memory();
          for (uint32_t i = 0; i < count; ++i) word.object->words()[i] = take(base, op[4 + i]);
        }
        set(op[1], word);
        break;
      }
      case Opcode::kField: {
        next = op + 4;
        const Word& from = base[register_of(op[2])];
        if (from.tag != Tag::kCell) return wrong(op[2], "a constructed value with fields");
        if (op[3] >= from.object->length)
          return error(fmt::format("field {} of a value with {}", op[3], from.object->length));
        const Word field = from.object->words()[op[3]];
        Heap::retain(field);
        if (op[2] & kLastUse) {
          const Word before = take(base, op[2]);
          heap_.release(before);
        }
        set(op[1], field);
        break;
      }
      case Opcode::kClosure: {
        next = op + 3 + count;
        Word word(Tag::kFunction, 0, op[2]);
        if (count > 0) {
          for (const uint32_t capture : std::span(op + 3, count)) {
            if (base[register_of(capture)].tag == Tag::kEmpty) return empty(capture);
          }
          word.tag = Tag::kClosure;
          word.object = heap_.make(Tag::kClosure, op[2], count);
          if (!word.object) return no_memory();
          for (uint32_t i = 0; i < count; ++i) word.object->words()[i] = take(base, op[3 + i]);
        }
        set(op[1], word);
        break;
      }
      case Opcode::kMakeReference: {
        next = op + 3;
        if (base[register_of(op[2])].tag == Tag::kEmpty) return empty(op[2]);
        if (heap_.wants_collection()) [[unlikely]]
          heap_.collect(std::span(words_).first(top_));
        Word word(Tag::kReference);
        word.object = heap_.make_reference();
        if (!word.object) return no_memory();
        word.object->words()[0] = take(base, op[2]);
        set(op[1], word);
        break;
      }
      case Opcode::kReadReference: {
        next = op + 3;
        const Word& reference = base[register_of(op[2])];
        if (reference.tag != Tag::kReference) return wrong(op[2], "a reference");
        const Word word = reference.object->words()[0];
        Heap::retain(word);
        if (op[2] & kLastUse) {
          const Word before = take(base, op[2]);
          heap_.release(before);
        }
        set(op[1], word);
        break;
      }
      case Opcode::kWriteReference: {
        next = op + 3;
        if (base[register_of(op[1])].tag != Tag::kReference) return wrong(op[1], "a reference");
        if (base[register_of(op[2])].tag == Tag::kEmpty) return empty(op[2]);
        const Word reference = take(base, op[1]), value = take(base, op[2]);
        const Word before = reference.object->words()[0];
        reference.object->words()[0] = value;
        heap_.release(before);
        heap_.release(reference);
        break;
      }
      case Opcode::kCall: {
        const uint32_t results = op[2];
        frames_.back().next = op + 3 + count + results;
        TENON_TRY(call(op[1], nullptr, op + 3, count, op + 3 + count, results));
        TENON_TRY(load());
        break;
      }
      case Opcode::kTail:
        TENON_TRY(tail_call(op[1], nullptr, op + 2, count));
        TENON_TRY(load());
        break;
      case Opcode::kApply: {
        const uint32_t results = op[2];
        const Word& word = base[register_of(op[1])];
        if (word.tag != Tag::kFunction && word.tag != Tag::kClosure) return wrong(op[1], "a closure");
        const uint32_t function = word.tag == Tag::kFunction ? word.id : word.object->id;
        if (const size_t params = executable_.functions[function].params.size(); params != count)
          return error(fmt::format("a closure of {} parameters is called with {}", params, count));
        frames_.back().next = op + 3 + count + results;
        const Word closure = take(base, op[1]);
        Status status = call(function, &closure, op + 3, count, op + 3 + count, results);
        heap_.release(closure);
        TENON_TRY(status);
        TENON_TRY(load());
        break;
      }
      case Opcode::kTailApply: {
        const Word closure = base[op[1]];
        if (closure.tag != Tag::kFunction && closure.tag != Tag::kClosure) return wrong(op[1], "a closure");
        const uint32_t function = closure.tag == Tag::kFunction ? closure.id : closure.object->id;
        if (const size_t params = executable_.functions[function].params.size(); params != count)
          return error(fmt::format("a closure of {} parameters is called with {}", params, count));
        Heap::retain(closure);
        Status status = tail_call(function, &closure, op + 2, count);
        heap_.release(closure);
        TENON_TRY(status);
        TENON_TRY(load());
        break;
      }
      case Opcode::kReturn: {
        const Frame frame = frames_.back();
        if (!frame.results) {
          return finish(op + 1, count);
        }
        for (const uint32_t r : std::span(op + 1, count)) {
          if (base[r].tag == Tag::kEmpty) return empty(r);
        }
        if (count == 1) {
          const Word result = base[op[1]];
          base[op[1]] = {};
          leave_frame();
          base = words_.data() + frames_.back().base;
          set(frame.results[0], result);
          TENON_TRY(load());
          break;
        }
        scratch_.clear();
        for (const uint32_t r : std::span(op + 1, count)) {
          scratch_.push_back(base[r]);
          Heap::retain(base[r]);
        }
        leave_frame();
        base = words_.data() + frames_.back().base;
        for (uint32_t i = 0; i < count; ++i) set(frame.results[i], scratch_[i]);
        TENON_TRY(load());
        break;
      }
    }
    if constexpr (hooked) TENON_TRY(show(*words, words->origin[static_cast<size_t>(op - words->code.data())]));
    if constexpr (after == After::kEnd) return {};
  }
}

// The word where a branch or a switch goes on.
Expected<uint32_t> Run::target(const uint32_t* op) {
  const Words& words = *frames_.back().words;
  const Word& word = at(op[1]);
  if (static_cast<Opcode>(*op & 0xff) == Opcode::kBranch) {
    if (word.tag == Tag::kEmpty) return empty(op[1]);
    TENON_TRY_ASSIGN(value, tensor(op[1]));
    if (value->dtype() != DType::kBool || value->size() != 1)
      return error(fmt::format("a branch on {}, must be bool with one element", describe(*value)));
    return value->bytes()[0] != std::byte{0} ? static_cast<uint32_t>(op - words.code.data()) + 3 : op[2];
  }
  const bool fits =
      word.tag == Tag::kCell ? word.object->id == op[2] : word.tag == Tag::kConstructor && word.bits == int64_t{op[2]};
  if (!fits || word.id >= *op >> 8)
    return wrong(op[1], fmt::format("a value of type {}", executable_.types[op[2]].name));
  return op[3 + word.id];
}

// Functions that are compiled ahead of time.

static_assert(sizeof(Word) == sizeof(tn_word) && offsetof(tn_word, bits) == 8);
static_assert(static_cast<int>(Tag::kEmpty) == TN_WORD_EMPTY && static_cast<int>(Tag::kScalar) == TN_WORD_SCALAR &&
              static_cast<int>(Tag::kTensor) == TN_WORD_FIRST_OBJECT);

Status Run::run_compiled(const uint32_t*& next) {
  const Words& words = *frames_.back().words;
  machine_.registers = reinterpret_cast<tn_word*>(words_.data() + frames_.back().base);
  const uint32_t at = words.compiled(&machine_, words.origin[static_cast<size_t>(next - words.code.data())]);
  if (at == TN_COMPILED_FAILED) return std::unexpected(std::move(failure_));
  next = words.code.data() + words.start[at];
  return {};
}

int32_t Run::fail_in_code(Diagnostic problem) {
  failure_ = std::move(problem);
  return 1;
}

int32_t Run::Machine::step_now(tn_machine* machine, uint32_t instruction) {
  Run& run = *static_cast<Machine*>(machine)->run;
  const Words& words = *run.frames_.back().words;
  try {
    Status status = run.loop<After::kEnd>(words.code.data() + words.start[instruction]);
    return status ? 0 : run.fail_in_code(std::move(status.error()));
  } catch (const std::bad_alloc&) {  // the code has no tables for unwinding
    return run.fail_in_code(run.no_memory().error());
  }
}

int32_t Run::Machine::spend_now(tn_machine* machine, uint32_t instruction, uint32_t count) {
  Run& run = *static_cast<Machine*>(machine)->run;
  const Words& words = *run.frames_.back().words;
  run.now_ = words.code.data() + words.start[instruction];
  for (uint32_t i = 0; i < count; ++i) {
    if (--machine->budget != 0) continue;
    if (Status status = run.refill(); !status) return run.fail_in_code(std::move(status.error()));
  }
  return 0;
}

void Run::Machine::release_now(tn_machine* machine, uint32_t reg) {
  static_cast<Machine*>(machine)->run->write(reg, {});
}

uint32_t Run::Machine::target_now(tn_machine* machine, uint32_t instruction) {
  Run& run = *static_cast<Machine*>(machine)->run;
  const Words& words = *run.frames_.back().words;
  const uint32_t* const op = words.code.data() + words.start[instruction];
  run.now_ = op;
  const auto target = run.target(op);
  if (target) return words.origin[*target];
  (void)run.fail_in_code(target.error());
  return TN_COMPILED_FAILED;
}

// Instructions that compute.

Status Run::other(uint32_t index) {
  return std::visit([&](const auto& operation) { return execute(operation); },
                    frames_.back().words->function->code[index].operation);
}
template <class O>
Status Run::execute(const O&) {
  return error("the instruction has no words", {}, {}, Fault::kInternal);
}

Expected<Tensor> Run::tensor(Register from) {
  const Word& word = at(from);
  if (word.tag == Tag::kTensor) return heap_.share(static_cast<const TensorObject*>(word.object)->tensor);
  if (word.tag != Tag::kScalar || word.dtype == kUnknownSize) return wrong(from, "a tensor");
  Storage storage = session_.buffers.take(sizeof(word.bits));
  if (!storage.memory) return no_memory();
  Tensor scalar = Tensor::in(std::move(storage), static_cast<DType>(word.dtype), {});
  __builtin_memcpy(scalar.bytes().data(), &word.bits, scalar.bytes().size());
  return scalar;
}

// Executes a call that computes: timed, recorded and kept for the hook. `call` puts its results into made_.
Status Run::compute(const Registers& from, const Registers& to, std::string_view name, std::string_view device,
                    auto&& call) {
  TENON_TRY(load_args(from));
  probes_.clear();
  const bool records = session_.options.profile && profile_.calls.size() < kMaxCallRecords;
  CallRecord record;
  if (records) record = {name, layer(), device, session_.now(), 0, -1};
  TENON_TRY(call());
  if (records) {
    record.end_ns = session_.now();
    if (device == "accel") {  // which may have begun before this instruction
      record.launch = static_cast<int32_t>(profile_.launches.size()) - 1;
      record.begin_ns = profile_.launches.back().begin_ns;
      record.end_ns = profile_.launches.back().end_ns;
    }
    if (call_begin_) record.begin_ns = *call_begin_;
    call_begin_.reset();
    profile_.calls.push_back(std::move(record));
  }
  own_.clear();
  for (const Tensor& result : made_) own_.push_back(result && result.alone());
  if (session_.options.hook) results_ = made_;
  else release_args();
  for (size_t i = 0; i < to.size(); ++i) {
    if (!made_[i]) return error(fmt::format("result {} of '{}' is missing", i, name));
    const Word word = heap_.tensor(std::move(made_[i]), own_[i]);
    if (word.tag == Tag::kEmpty) return no_memory();
    write(to[i], word);
  }
  grow();
  return {};
}

Status Run::load_args(const Registers& from) {
  release_args();
  for (const Register r : from) {
    TENON_TRY_ASSIGN(value, tensor(r));
    args_.push_back(std::move(*value));
  }
  return {};
}

void Run::release_args() {
  for (Tensor& arg : args_) heap_.drop(std::move(arg));
  args_.clear();
}

Expected<std::vector<Tensor>> Run::computed(const CallKernel& call, const BoundKernel& bound) {
  std::span<const Tensor> values(args_);
  size_t count = 0;
  for (const ComputedAttr& attr : call.computed) count += attr.count;
  const auto inputs = values.first(values.size() - count);
  values = values.subspan(inputs.size());
  Attrs attrs = call.attrs;
  for (const ComputedAttr& attr : call.computed) {
    auto value = computed_attr(attr.name, attr.kind, values.first(attr.count));
    if (!value) return error(fmt::format("{}: {}", call.kernel, value.error().what));
    attrs.insert_or_assign(attr.name, std::move(*value));
    values = values.subspan(attr.count);
  }
  return bound.kernel(attrs, inputs);
}

const std::string& Run::layer() const {
  const Words& words = *frames_.back().words;
  return words.function->code[words.origin[static_cast<size_t>(now_ - words.code.data())]].layer;
}
const BoundKernel& Run::kernel_of() const {
  const Words& words = *frames_.back().words;
  return session_.kernels[words.index][words.origin[static_cast<size_t>(now_ - words.code.data())]];
}

Expected<std::vector<Tensor>> Run::call_kernel(const CallKernel& call) {
  const BoundKernel& bound = kernel_of();
  try {
    if (!bound.in_use) return call.computed.empty() ? bound.kernel(call.attrs, args_) : computed(call, bound);
    const std::lock_guard lock(*bound.in_use);
    return bound.library(args_);
  } catch (const std::bad_alloc&) {
    return error(fmt::format("not enough memory for the results of kernel '{}'", call.kernel));
  }
}

// Copies the second operand after the first one, in the memory of the first where that has room and no other owner,
// else in memory with room for more. False: the operands are not two tensors that are one after the other in memory.
Expected<bool> Run::grow_by_concat(const CallKernel& call) {
  constexpr uint64_t kMostRoom = uint64_t{1} << 30;  // of a file's promise, beyond the double of what is needed
  const Word first = at(call.args[0]), second = at(call.args[1]);
  const auto* axis_attr = call.attrs.contains("axis") ? std::get_if<int64_t>(&call.attrs.at("axis")) : nullptr;
  if (first.tag != Tag::kTensor || second.tag != Tag::kTensor || !axis_attr) return false;
  auto& grown = *static_cast<TensorObject*>(first.object);
  const Tensor& added = static_cast<const TensorObject*>(second.object)->tensor;
  const Shape &before = grown.tensor.shape(), &tail = added.shape();
  const auto rank = static_cast<int64_t>(before.size());
  const int64_t axis = *axis_attr < 0 ? *axis_attr + rank : *axis_attr;
  if (axis < 0 || axis >= rank || tail.size() != before.size() || added.dtype() != grown.tensor.dtype()) return false;
  for (int64_t i = 0; i < rank; ++i) {
    const auto k = static_cast<size_t>(i);
    if (i != axis && (before[k] != tail[k] || (i < axis && before[k] != 1))) return false;
  }
  Shape shape = heap_.shape();
  shape.assign(before.begin(), before.end());
  shape[static_cast<size_t>(axis)] += tail[static_cast<size_t>(axis)];
  const DType dtype = added.dtype();
  const auto bytes = checked_bytes(dtype, shape);
  if (!bytes) return false;
  const auto needed = static_cast<uint64_t>(*bytes);
  const size_t done = grown.tensor.bytes().size();
  const bool in_place = grown.count == 1 && grown.room.bytes >= needed && grown.room.memory.use_count() == 2;
  Storage room = grown.room;
  if (!in_place) {
    const auto* capacity = call.attrs.contains(kCapacity) ? std::get_if<int64_t>(&call.attrs.at(kCapacity)) : nullptr;
    const auto promised = static_cast<uint64_t>(capacity ? std::max<int64_t>(*capacity, 0) : 0);
    room = session_.buffers.take(promised >= needed ? std::min(promised, std::max(kMostRoom, 2 * needed)) : 2 * needed);
    if (!room.memory) return no_memory();
    std::ranges::copy(grown.tensor.bytes(), room.memory.get());
  }
  std::ranges::copy(added.bytes(), room.memory.get() + done);
  Tensor result = Tensor::in(room, dtype, std::move(shape));
  Word word = first;
  if (in_place) {
    heap_.drop(std::exchange(grown.tensor, std::move(result)));
    words_[frames_.back().base + call.args[0]] = {};
  } else {
    word = heap_.tensor(std::move(result), std::move(room));
    if (word.tag == Tag::kEmpty) return no_memory();
    grow();
  }
  write(call.results[0], word);
  return true;
}

Status Run::execute(const CallKernel& call) {
  if (kernel_of().grows) {
    const int64_t begin = session_.now();
    TENON_TRY_ASSIGN(grown, grow_by_concat(call));
    if (*grown) {
      if (session_.options.profile && profile_.calls.size() < kMaxCallRecords)
        profile_.calls.push_back({call.kernel, layer(), "cpu", begin, session_.now(), -1});
      return {};
    }
  }
  return compute(call.args, call.results, call.kernel, "cpu", [&]() -> Status {
    TENON_TRY_ASSIGN(results, call_kernel(call));
    made_ = std::move(*results);
    if (made_.size() == call.results.size()) return {};
    return error(fmt::format("kernel '{}' has {} results, the executable expects {}", call.kernel, made_.size(),
                             call.results.size()));
  });
}

Status Run::execute(const CallProgram& call) {
  return compute(call.args, call.results, executable_.programs[call.program].name, "accel", [&]() -> Status {
    if (started_ && !started_->is(call.program, args_)) abandon_started();
    if (!started_) TENON_TRY(start(call.program, std::unique_lock(session_.device), std::launch::deferred));
    return finish_started();
  });
}

// A hook is shown one instruction after another. While another run has the device, the program waits for it at its
// call.
Status Run::execute(const StartProgram& start) {
  if (session_.options.hook || started_) return {};
  std::unique_lock device(session_.device, std::try_to_lock);
  if (!device) return {};
  TENON_TRY(load_args(start.args));
  TENON_TRY(this->start(start.program, std::move(device), std::launch::async));
  release_args();
  return {};
}

Status Run::execute(const StartNative& start) {
  auto* gpu = std::get_if<cuda::GpuLibrary>(&session_.natives[start.code]);
  if (!gpu || session_.options.hook || started_on_gpu_) return {};
  TENON_TRY(load_args(start.args));
  gpu_begin_ = session_.now();
  TENON_TRY_ASSIGN(started, gpu->try_start(start.kernel, args_));
  started_on_gpu_ = std::move(*started);
  release_args();
  return {};
}

Status Run::start(uint32_t program, std::unique_lock<std::mutex> device, std::launch how) {
  const bool first = !session_.launched[program];
  session_.launched[program] = true;
  StartedProgram started{.device = std::move(device)};
  started.record.program = program;
  started.record.begin_ns = session_.now();
  for (const Tensor& input : args_) started.addresses.push_back(input.bytes().data());
  if (session_.options.timeline && first) started.recorded = session_.options.accelerator->simulator();
  if (started.recorded) started.recorded->record_timeline(true);
  ProgramOnDevice& launched = session_.programs[program];
  if (Status status = launched.start(args_); !status) {
    if (started.recorded) started.recorded->record_timeline(false);
    return status;
  }
  started.end = std::async(how, [this, &launched] {
    Status status = launched.finish(session_.options.launch_limit);
    return StartedProgram::End{std::move(status), session_.now()};
  });
  started_.emplace(std::move(started));
  return {};
}

// Waits for a launch whose results nothing wants: the run failed before it came to the call.
void Run::abandon_started() {
  started_on_gpu_.reset();
  call_begin_.reset();
  if (!started_) return;
  started_->end.wait();
  if (started_->recorded) started_->recorded->record_timeline(false);
  started_.reset();
}

Status Run::finish_started() {
  StartedProgram started = std::move(*started_);
  started_.reset();
  auto [status, end_ns] = started.end.get();
  LaunchRecord& record = started.record;
  record.end_ns = end_ns;
  if (started.recorded) {
    const auto timeline = started.recorded->timeline();
    record.timeline.assign(timeline.begin(), timeline.end());
    started.recorded->record_timeline(false);
  }
  if (!status) return status;
  ProgramOnDevice& program = session_.programs[record.program];
  TENON_TRY_ASSIGN(results, program.outputs());
  made_ = std::move(*results);
  TENON_TRY_ASSIGN(counters, driver::read_counters(*session_.options.accelerator));
  record.counters = *counters;
  if (session_.options.hook) {
    for (const Probe& probe : executable_.programs[record.program].probes) {
      TENON_TRY_ASSIGN(value, program.read(probe));
      probes_.push_back({&probe, std::move(*value)});
    }
  }
  profile_.launches.push_back(std::move(record));
  return {};
}

Status Run::execute(const CallNative& call) {
  const std::string& name = executable_.natives[call.code].kernels[call.kernel].name;
  auto& library = session_.natives[call.code];
  if (auto* gpu = std::get_if<cuda::GpuLibrary>(&library)) {
    return compute(call.args, call.results, name, "cuda", [&]() -> Status {
      result_memory_.call = &call;
      if (started_on_gpu_ && !started_on_gpu_->is(*gpu, call.kernel, args_)) started_on_gpu_.reset();
      if (!started_on_gpu_) return gpu->call(call.kernel, args_, made_, result_memory_);
      call_begin_ = gpu_begin_;
      const auto started = std::move(started_on_gpu_);
      return gpu->finish(*started, args_, made_, result_memory_);
    });
  }
  const auto& native = std::get<NativeLibrary>(library);
  RecordedCall* const recorded = recorded_call();
  if (recorded && recorded->is_recorded) {
    TENON_TRY_ASSIGN(replayed, replay(call, *recorded, native));
    if (*replayed) return {};
  }
  return compute(call.args, call.results, name, "cpu", [&]() -> Status {
    result_memory_.call = &call;
    TENON_TRY(native.call(call.kernel, args_, made_, result_memory_, *session_.pool));
    if (recorded) record(*recorded, native.code().kernels[call.kernel].signature);
    return {};
  });
}

// A hook is shown handles of arguments and results, which a replayed call does not make.
Run::RecordedCall* Run::recorded_call() {
  if (session_.options.hook) return nullptr;
  const Words& words = *frames_.back().words;
  if (recorded_.empty()) recorded_.resize(executable_.functions.size());
  std::vector<RecordedCall>& calls = recorded_[words.index];
  if (calls.empty()) calls.resize(words.function->code.size());
  return &calls[words.origin[static_cast<size_t>(now_ - words.code.data())]];
}

void Run::record(RecordedCall& recorded, const Signature& signature) const {
  // Sizes that depend on the elements of a parameter are not the same in each call.
  const auto is_ragged = [](const SignatureBuffer& buffer) {
    return std::ranges::any_of(buffer.axes, [](const Size& size) {
      return std::ranges::any_of(size, [](const SizeStep& step) {
        return step.op == SizeStep::Op::kElement || step.op == SizeStep::Op::kIndex;
      });
    });
  };
  if (std::ranges::any_of(signature.params, is_ragged) || std::ranges::any_of(signature.results, is_ragged)) return;
  const auto describe_all = [](std::span<const Tensor> tensors, std::vector<RecordedCall::Buffer>& buffers) {
    buffers.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      buffers[i].dtype = tensors[i].dtype();
      buffers[i].shape.assign(tensors[i].shape().begin(), tensors[i].shape().end());
      buffers[i].bytes = tensors[i].bytes().size();
    }
  };
  describe_all(args_, recorded.params);
  describe_all(made_, recorded.results);
  recorded.dims = result_memory_.dims;
  recorded.is_recorded = true;
}

Expected<bool> Run::replay(const CallNative& call, const RecordedCall& recorded, const NativeLibrary& library) {
  constexpr size_t kMostBuffers = 32, kMostScalars = 8, kAlignment = 64;
  if (call.args.size() + call.results.size() > kMostBuffers) return false;
  std::array<void*, kMostBuffers> buffers;
  alignas(kAlignment) std::array<std::byte, kMostScalars * kAlignment> scalars;
  size_t scalar_count = 0;
  const auto next_scalar = [&] { return scalars.data() + kAlignment * scalar_count++; };
  void** next = buffers.data();
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Word& word = at(call.args[i]);
    const RecordedCall::Buffer& param = recorded.params[i];
    if (word.tag == Tag::kTensor) {
      const Tensor& tensor = static_cast<const TensorObject*>(word.object)->tensor;
      if (tensor.dtype() != param.dtype || tensor.shape() != param.shape) return false;
      *next++ = const_cast<std::byte*>(tensor.bytes().data());
    } else if (word.tag == Tag::kScalar && word.is_scalar(param.dtype) && param.shape.empty() &&
               scalar_count < kMostScalars) {
      std::byte* const scalar = next_scalar();
      __builtin_memcpy(scalar, &word.bits, sizeof(word.bits));
      *next++ = scalar;
    } else {
      return false;
    }
  }
  result_memory_.call = &call;
  made_.clear();
  for (size_t i = 0; i < call.results.size(); ++i) {
    const RecordedCall::Buffer& result = recorded.results[i];
    if (result.shape.empty()) {
      if (scalar_count == kMostScalars) return false;
      *next++ = next_scalar();
      made_.emplace_back();
      continue;
    }
    Storage storage = result_memory_.storage(i, result.bytes);
    if (!storage.memory) return false;  // for the message
    Shape shape = heap_.shape();
    shape.assign(result.shape.begin(), result.shape.end());
    made_.push_back(Tensor::in(std::move(storage), result.dtype, std::move(shape)));
    *next++ = made_.back().bytes().data();
  }
  const bool records = session_.options.profile && profile_.calls.size() < kMaxCallRecords;
  const int64_t begin = records ? session_.now() : 0;
  TENON_TRY(library.call_buffers(call.kernel, buffers.data(), recorded.dims, *session_.pool));
  if (records) {
    const std::string& name = executable_.natives[call.code].kernels[call.kernel].name;
    profile_.calls.push_back({name, layer(), "cpu", begin, session_.now(), -1});
  }
  for (size_t i = 0; i < call.results.size(); ++i) {
    const RecordedCall::Buffer& result = recorded.results[i];
    if (result.shape.empty()) {
      Word word(Tag::kScalar, static_cast<uint8_t>(result.dtype));
      __builtin_memcpy(&word.bits, buffers[call.args.size() + i], result.bytes);
      write(call.results[i], word);
      continue;
    }
    const bool own = made_[i].alone();
    const Word word = heap_.tensor(std::move(made_[i]), own);
    if (word.tag == Tag::kEmpty) return no_memory();
    write(call.results[i], word);
  }
  grow();
  return true;
}

Storage Run::ResultMemory::storage(size_t result, size_t bytes) {
  const ArenaSlot slot = call->slots.empty() ? ArenaSlot() : call->slots[result];
  if (slot.bytes != 0 && slot.bytes >= bytes) {
    Storage planned = run_.frame_arenas_.back().part(slot.offset, slot.bytes);
    // A hook sees the arguments after the call, so no result is in place of one.
    const auto is_argument = [&](const Tensor& arg) { return arg.bytes().data() == planned.memory.get(); };
    if (!run_.session_.options.hook || std::ranges::none_of(run_.args_, is_argument)) return planned;
  }
  return run_.session_.buffers.take(bytes);
}

// Sizes.

// Reads the registers into sizes_.
Status Run::sizes(std::span<const Register> registers) {
  sizes_.clear();
  for (const Register r : registers) {
    const Word& word = at(r);
    if (word.tag != Tag::kScalar || (word.dtype != kUnknownSize && !word.is_scalar(DType::kI64)))
      return wrong(r, "a size");
    if (word.dtype == kUnknownSize) sizes_.emplace_back();
    else sizes_.emplace_back(word.bits);
  }
  return {};
}

namespace {

constexpr Word kUnknown(Tag::kScalar, kUnknownSize);

std::string shape_text(const Word& word) {
  if (word.tag == Tag::kTensor) return describe(static_cast<const TensorObject*>(word.object)->tensor);
  return fmt::format("{} ()", name(static_cast<DType>(word.dtype)));
}
bool is_tensor(const Word& word) {
  return word.tag == Tag::kTensor || (word.tag == Tag::kScalar && word.dtype != kUnknownSize);
}
std::span<const int64_t> shape_of(const Word& word) {
  if (word.tag != Tag::kTensor) return {};
  return static_cast<const TensorObject*>(word.object)->tensor.shape();
}
DType dtype_of_word(const Word& word) {
  return word.tag == Tag::kTensor ? static_cast<const TensorObject*>(word.object)->tensor.dtype()
                                  : static_cast<DType>(word.dtype);
}

}  // namespace

Status Run::execute(const ComputeSize& compute) {
  TENON_TRY(sizes(compute.sizes));
  const auto value = compute.value.empty() ? std::nullopt : evaluate(compute.value, sizes_);
  write(compute.to, value ? scalar_word(*value) : kUnknown);
  return {};
}

Status Run::execute(const BindSize& bind) {
  const Word& word = at(bind.tensor);
  if (!is_tensor(word)) return wrong(bind.tensor, "a tensor");
  TENON_TRY(sizes(bind.sizes));
  Word result = kUnknown;
  const auto shape = shape_of(word);
  const auto factor = evaluate(bind.factor, sizes_), offset = evaluate(bind.offset, sizes_);
  int64_t room = 0;
  if (bind.axis < shape.size() && factor && offset && *factor != 0 &&
      !__builtin_sub_overflow(shape[bind.axis], *offset, &room) && !(room == INT64_MIN && *factor == -1) &&
      room % *factor == 0 && room / *factor >= 0) {
    result = scalar_word(room / *factor);
  }
  write(bind.to, result);
  return {};
}

Status Run::execute(const CheckShape& check) {
  const Word& word = at(check.tensor);
  if (!is_tensor(word)) return wrong(check.tensor, "a tensor");
  TENON_TRY(sizes(check.known));
  const auto fail = [&](std::string_view why) {
    return error(fmt::format("{} is {}, must be {}{}", check.subject, shape_text(word), check.expected, why));
  };
  if (!std::ranges::all_of(sizes_, [](const auto& size) { return size.has_value(); })) return fail("");
  TENON_TRY(sizes(check.sizes));
  const auto shape = shape_of(word);
  if (dtype_of_word(word) != check.dtype || shape.size() != check.axes.size()) return fail("");
  for (size_t i = 0; i < shape.size(); ++i) {
    if (check.axes[i].empty()) continue;
    const auto size = evaluate(check.axes[i], sizes_);
    if (size && *size != shape[i]) return fail("");
    if (!size && check.strict) return fail(fmt::format(": no input determines the size of axis {}", i));
  }
  return {};
}

Status Run::execute(const CheckSize& check) {
  TENON_TRY(sizes({&check.size, 1}));
  if (!sizes_[0] || (*sizes_[0] >= check.low && *sizes_[0] <= check.high)) return {};
  return error(fmt::format("{} is {}, must be in {}..{}", check.subject, *sizes_[0], check.low,
                           check.high == INT64_MAX ? "" : std::to_string(check.high)));
}

// Inputs and results.

Expected<Word> Run::import(const Tensor& tensor) {
  if (!tensor) return error("an input has an empty tensor", executable_.name);
  const Word word = heap_.tensor(heap_.share(tensor), false);
  if (word.tag == Tag::kEmpty) return no_memory();
  return word;
}

// The word of an input. Lists are long, so the work is a list too.
Expected<Word> Run::import(const Value& input) {
  struct Open {
    const Value* value;
    Object* owner;  // of the word to fill; nullptr: the input itself
    uint32_t index;
  };
  std::unordered_map<const ValueObject*, Object*> made;
  std::vector<Open> open{{&input, nullptr, 0}};
  Word result;
  const auto fail = [&](std::unexpected<Diagnostic> problem) {
    heap_.release(result);
    return problem;
  };
  while (!open.empty()) {
    const auto [value, owner, index] = open.back();
    open.pop_back();
    if (!*value) return fail(error("an input has a missing value", executable_.name));
    const ValueObject& object = *value->object;
    Word word;
    if (object.kind == ValueObject::Kind::kTensor) {
      auto imported = import(object.tensor);
      if (!imported) return fail(std::unexpected(std::move(imported.error())));
      word = *imported;
    } else if (object.kind != ValueObject::Kind::kData) {
      return fail(error("an input holds a function or a reference", executable_.name));
    } else {
      const bool known =
          object.type == kTupleType
              ? object.constructor == 0
              : object.type < executable_.types.size() &&
                    object.constructor < executable_.types[object.type].constructors.size() &&
                    object.fields.size() == executable_.types[object.type].constructors[object.constructor].fields;
      if (!known) return fail(error("an input has a value of no type of the model", executable_.name));
      word.id = object.constructor;
      const auto before = made.find(&object);
      if (object.fields.empty()) {
        word.tag = Tag::kConstructor;
        word.bits = object.type;
      } else if (before != made.end()) {
        word.tag = Tag::kCell;
        word.object = before->second;
        Heap::retain(word);
      } else {
        word.tag = Tag::kCell;
        word.object = heap_.make(Tag::kCell, object.type, static_cast<uint32_t>(object.fields.size()));
        if (!word.object) return fail(no_memory());
        made.emplace(&object, word.object);
        for (uint32_t i = 0; i < object.fields.size(); ++i) open.push_back({&object.fields[i], word.object, i});
      }
    }
    if (owner) owner->words()[index] = word;
    else result = word;
  }
  return result;
}

// The value of a word.
Value Run::give(const Word& word, Given& made) {
  struct Open {
    const Word* word;
    Value* to;
  };
  Value result;
  std::vector<Open> open{{&word, &result}};
  while (!open.empty()) {
    const auto [from, to] = open.back();
    open.pop_back();
    if (from->is_object()) {
      if (const auto before = made.find(from->object); before != made.end()) {
        *to = before->second;
        continue;
      }
    }
    *to = Value::tuple({});
    ValueObject& object = *to->object;
    switch (from->tag) {
      case Tag::kEmpty: to->object.reset(); break;
      case Tag::kScalar:
        object.kind = ValueObject::Kind::kTensor;
        if (from->dtype == kUnknownSize) break;
        object.tensor = Tensor::for_overwrite(static_cast<DType>(from->dtype), {});
        __builtin_memcpy(object.tensor.bytes().data(), &from->bits, object.tensor.bytes().size());
        break;
      case Tag::kTensor:
        object.kind = ValueObject::Kind::kTensor;
        object.tensor = static_cast<const TensorObject*>(from->object)->tensor;
        break;
      case Tag::kConstructor:
        object.type = static_cast<uint32_t>(from->bits);
        object.constructor = from->id;
        break;
      case Tag::kCell:
        object.type = from->object->id;
        object.constructor = from->id;
        break;
      case Tag::kFunction:
      case Tag::kClosure: object.kind = ValueObject::Kind::kFunction; break;
      case Tag::kReference: object.kind = ValueObject::Kind::kReference; break;
    }
    if (!from->is_object()) continue;
    made.emplace(from->object, *to);
    if (from->tag != Tag::kCell && from->tag != Tag::kReference) continue;
    object.fields.resize(from->object->length);
    for (uint32_t i = 0; i < from->object->length; ++i) open.push_back({&from->object->words()[i], &object.fields[i]});
  }
  return result;
}

void Session::State::add(Profile made, bool ended) {
  const auto first = static_cast<int32_t>(profile.launches.size());
  for (CallRecord& call : made.calls) {
    if (profile.calls.size() >= kMaxCallRecords) break;
    if (call.launch >= 0) call.launch += first;
    profile.calls.push_back(std::move(call));
  }
  std::ranges::move(made.launches, std::back_inserter(profile.launches));
  if (ended) {
    ++profile.runs;
    profile.memory = made.memory;
  }
}

std::unique_ptr<Run> Session::State::take_run() {
  {
    const std::lock_guard lock(mutex);
    if (!idle.empty()) {
      std::unique_ptr<Run> run = std::move(idle.back());
      idle.pop_back();
      return run;
    }
  }
  return std::make_unique<Run>(*this);
}

void Session::State::give_back(std::unique_ptr<Run> run, bool ended) {
  buffers.age();
  const std::lock_guard lock(mutex);
  if (options.profile) add(std::move(run->profile()), ended);
  idle.push_back(std::move(run));
}

Expected<std::vector<Value>> Session::State::run(std::span<const Value> inputs) {
  std::unique_ptr<Run> run = take_run();
  auto results = run->run(inputs);
  give_back(std::move(run), results.has_value());
  return results;
}

Status Session::State::run(std::span<const Tensor> inputs, std::vector<Tensor>& results) {
  std::unique_ptr<Run> run = take_run();
  Status status = run->run(inputs, results);
  give_back(std::move(run), status.has_value());
  return status;
}

}  // namespace tenon::runtime
