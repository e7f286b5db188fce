// Executes the entry function of a session's executable, instruction by instruction.
#include "runtime/vm/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/vm/scalar.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

constexpr uint64_t kSlice = 1 << 14;  // instructions between two checks of the limits
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
  number_ = ++session_.runs;
  stop_ = {.cancel = options.cancel};
  if (options.max_time.count() > 0) stop_.deadline = std::chrono::steady_clock::now() + options.max_time;
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
  TENON_TRY(check_stop());
  machine_.budget = std::min(left_, kSlice);
  left_ -= machine_.budget - 1;
  return {};
}

Status Run::check_stop() const {
  if (stop_.is_cancelled()) return error("the run was cancelled");
  if (!stop_.is_late()) return {};
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(session_.options.max_time);
  return error(fmt::format("the run takes more than {} ms", limit.count()));
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
      case Opcode::kCallKernel:
      case Opcode::kCallProgram:
      case Opcode::kCallNative:
      case Opcode::kBindSize:
      case Opcode::kComputeSize:
      case Opcode::kCheckShape:
      case Opcode::kCheckSize:
      case Opcode::kStartProgram:
      case Opcode::kStartNative:
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
      case Opcode::kLoadConstant:
        next = op + 3;
        set(op[1], session_.constants[op[2]]);
        break;
      case Opcode::kScalarCompute: {
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
      case Opcode::kReadField: {
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
      case Opcode::kMakeClosure: {
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
      case Opcode::kCallFunction: {
        const uint32_t results = op[2];
        frames_.back().next = op + 3 + count + results;
        TENON_TRY(call(op[1], nullptr, op + 3, count, op + 3 + count, results));
        TENON_TRY(load());
        break;
      }
      case Opcode::kTailCall:
        TENON_TRY(tail_call(op[1], nullptr, op + 2, count));
        TENON_TRY(load());
        break;
      case Opcode::kCallClosure: {
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
      case Opcode::kTailCallClosure: {
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

}  // namespace tenon::runtime
