#include "runtime/vm/interpreter.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <new>
#include <string>
#include <utility>
#include <variant>

#include "runtime/vm/append.h"
#include "runtime/vm/scalar.h"
#include "support/try.h"
#include "support/visitor.h"

namespace tenon::runtime {
namespace {

// The number that is in the first word of an instruction beside its opcode.
uint32_t count_of(const uint32_t* op) { return *op >> kOpcodeBits; }
Opcode opcode_of(const uint32_t* op) { return static_cast<Opcode>(*op & ((uint32_t{1} << kOpcodeBits) - 1)); }

constexpr uint64_t set_of(std::initializer_list<Opcode> opcodes) {
  uint64_t set = 0;
  for (const Opcode opcode : opcodes) set |= uint64_t{1} << static_cast<unsigned>(opcode);
  return set;
}
bool is_one_of(uint64_t set, Opcode opcode) { return (set >> static_cast<unsigned>(opcode) & 1) != 0; }
static_assert(kOpcodes <= 64);
// Instructions that move their operands and need no value of them, so that results may be pending; and those that start
// what a later instruction waits for: of an instance they do nothing, since instances would wait for each other's.
constexpr uint64_t kMovesWords =
    set_of({Opcode::kMove, Opcode::kLoadConstant, Opcode::kJump, Opcode::kKill, Opcode::kReturn, Opcode::kCallFunction,
            Opcode::kCallClosure, Opcode::kTailCall, Opcode::kTailCallClosure, Opcode::kConstruct, Opcode::kReadField,
            Opcode::kMakeClosure, Opcode::kMakeReference, Opcode::kReadReference, Opcode::kWriteReference});
constexpr uint64_t kStarts = set_of({Opcode::kStartProgram, Opcode::kStartNative});

}  // namespace

Interpreter::Interpreter(RunState& run) : run_(run) {
  machine_.interpreter = this;
  machine_.constants = reinterpret_cast<const tn_word*>(run.session.constants.data());
  machine_.step = Machine::step_now;
  machine_.spend = Machine::spend_now;
  machine_.release = Machine::release_now;
  machine_.target = Machine::target_now;
  if (run.session.options.budget == 0) return;
  run.rematerializer = &rematerializer_.emplace(run, operands_, [this](const CallSite& site) { return invoke(site); });
  run.heap.set_owner(run.rematerializer);
}

// Instructions of Form::kWords, which are inlined into the loop: a call would cost as much as most of them do. Those
// that take long call a function that does not have the cursor, whose address would keep it in memory.

// A call, which has the word in two registers: where it is inlined, GCC 12 loads both halves at once from where they
// were just stored one by one, and waits for that.
[[gnu::noinline]] void Interpreter::set(Word& slot, Word value) {
  const Word before = slot;
  slot = value;
  run_.heap.release(before);
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<Move>(const uint32_t* op, Cursor& at) {
  at.next = op + 3;
  const Word word = take(at.base, op[2]);
  if (word.tag == Tag::kEmpty) return fail(run_.frames.is_empty(op[2]));
  set(at.base[op[1]], word);
  return true;
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<Kill>(const uint32_t* op, Cursor& at) {
  const uint32_t count = count_of(op);
  at.next = op + 1 + count;
  for (const uint32_t r : std::span(op + 1, count)) set(at.base[r], {});
  return true;
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<LoadConstant>(const uint32_t* op, Cursor& at) {
  at.next = op + 3;
  set(at.base[op[1]], run_.session.constants[op[2]]);
  return true;
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<ScalarCompute>(const uint32_t* op, Cursor& at) {
  constexpr unsigned kByte = 8;
  at.next = op + 4;
  const auto scalar_op = static_cast<ScalarOp>(count_of(op) & 0xff);
  const auto dtype = static_cast<DType>(count_of(op) >> kByte);
  Word& a = at.base[register_of(op[2])];
  Word& b = at.base[register_of(op[3])];
  for (const uint32_t i : {2, 3}) {
    if (at.base[register_of(op[i])].is_scalar(dtype)) [[likely]]
      continue;
    return fail(run_.frames.is_not(op[i], fmt::format("a scalar of {}", name(dtype))));
  }
  Word result;
  if (!compute_scalar(scalar_op, dtype, a, b, result))
    return fail(error(fmt::format("{}: division by zero", name(scalar_op))));
  if (op[2] & kLastUse) a = {};
  if (op[3] & kLastUse) b = {};
  set(at.base[op[1]], result);
  return true;
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<Jump>(const uint32_t* op, Cursor& at) {
  at.next = at.code + op[1];
  return true;
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<Switch>(const uint32_t* op, Cursor& at) {
  const auto next = target(op);
  if (!next) return fail(std::unexpected(next.error()));
  at.next = at.code + *next;
  return true;
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<Branch>(const uint32_t* op, Cursor& at) {
  const Word& condition = at.base[op[1]];
  if (!condition.is_scalar(DType::kBool)) [[unlikely]]
    return execute<Switch>(op, at);
  at.next = (condition.bits & 0xff) == 0 ? at.code + op[2] : op + 3;
  return true;
}

[[gnu::always_inline]] inline Object* Interpreter::make_object(Tag tag, uint32_t id, std::span<const uint32_t> fields,
                                                               Cursor& at) {
  for (const uint32_t field : fields) {
    if (at.base[register_of(field)].tag == Tag::kEmpty) return fail(run_.frames.is_empty(field)), nullptr;
  }
  Object* object = run_.heap.make(tag, id, static_cast<uint32_t>(fields.size()));
  if (!object) return fail(run_.no_memory()), nullptr;
  for (size_t i = 0; i < fields.size(); ++i) object->words()[i] = take(at.base, fields[i]);
  return object;
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<Construct>(const uint32_t* op, Cursor& at) {
  const uint32_t count = count_of(op);
  at.next = op + 4 + count;
  Word word(Tag::kConstructor, 0, op[3]);
  if (count == 0) {
    word.bits = op[2];
  } else {
    word.tag = Tag::kCell;
    word.object = make_object(Tag::kCell, op[2], {op + 4, count}, at);
    if (!word.object) return false;
  }
  set(at.base[op[1]], word);
  return true;
}

[[gnu::always_inline]] inline void Interpreter::share(const uint32_t* op, Word word, Cursor& at) {
  Heap::retain(word);
  if (op[2] & kLastUse) run_.heap.release(take(at.base, op[2]));
  set(at.base[op[1]], word);
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<ReadField>(const uint32_t* op, Cursor& at) {
  at.next = op + 4;
  const Word& from = at.base[register_of(op[2])];
  if (from.tag != Tag::kCell) return fail(run_.frames.is_not(op[2], "a constructed value with fields"));
  if (op[3] >= from.object->length)
    return fail(error(fmt::format("field {} of a value with {}", op[3], from.object->length)));
  share(op, from.object->words()[op[3]], at);
  return true;
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<MakeClosure>(const uint32_t* op, Cursor& at) {
  const uint32_t count = count_of(op);
  at.next = op + 3 + count;
  Word word(Tag::kFunction, 0, op[2]);
  if (count > 0) {
    word.tag = Tag::kClosure;
    word.object = make_object(Tag::kClosure, op[2], {op + 3, count}, at);
    if (!word.object) return false;
  }
  set(at.base[op[1]], word);
  return true;
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<MakeReference>(const uint32_t* op, Cursor& at) {
  at.next = op + 3;
  if (at.base[register_of(op[2])].tag == Tag::kEmpty) return fail(run_.frames.is_empty(op[2]));
  if (run_.heap.wants_collection()) [[unlikely]]
    collect();
  Word word(Tag::kReference);
  word.object = run_.heap.make_reference();
  if (!word.object) return fail(run_.no_memory());
  word.object->words()[0] = take(at.base, op[2]);
  set(at.base[op[1]], word);
  return true;
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<ReadReference>(const uint32_t* op, Cursor& at) {
  at.next = op + 3;
  const Word& reference = at.base[register_of(op[2])];
  if (reference.tag != Tag::kReference) return fail(run_.frames.is_not(op[2], "a reference"));
  share(op, reference.object->words()[0], at);
  return true;
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<WriteReference>(const uint32_t* op, Cursor& at) {
  at.next = op + 3;
  if (at.base[register_of(op[1])].tag != Tag::kReference) return fail(run_.frames.is_not(op[1], "a reference"));
  if (at.base[register_of(op[2])].tag == Tag::kEmpty) return fail(run_.frames.is_empty(op[2]));
  const Word reference = take(at.base, op[1]), value = take(at.base, op[2]);
  run_.heap.release(std::exchange(reference.object->words()[0], value));
  run_.heap.release(reference);
  return true;
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<Append>(const uint32_t* op, Cursor& at) {
  at.next = op + 7;
  return append(op);
}
bool Interpreter::append(const uint32_t* op) {
  const Words& words = *run_.frames.back().words;
  const CallSite site{words, words.origin[static_cast<size_t>(op - words.code.data())]};
  const Append call{op[1], register_of(op[2]), register_of(op[3]), op[4], op[5] | uint64_t{op[6]} << 32};
  const bool is_last_use = (op[2] & kLastUse) != 0 || call.to == call.first;
  Status appended = rematerializer_ ? rematerializer_->call(site, std::array{call.first, call.second}, {&call.to, 1})
                                    : runtime::append(run_, operands_, site, call, is_last_use);
  if (!succeeded(std::move(appended))) return false;
  for (const uint32_t operand : {op[2], op[3]}) {
    if (operand & kLastUse) run_.frames.write(register_of(operand), {});
  }
  return true;
}

// Frames.

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<CallFunction>(const uint32_t* op, Cursor&) {
  const std::span args(op + 3, count_of(op)), results(op + 3 + args.size(), op[2]);
  run_.frames.back().next = op + 3 + args.size() + results.size();
  return succeeded(run_.frames.call(run_.session.code[op[1]], nullptr, args, results));
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<CallClosure>(const uint32_t* op, Cursor& at) {
  const std::span args(op + 3, count_of(op)), results(op + 3 + args.size(), op[2]);
  const Words* function = callee(at.base[register_of(op[1])], op[1], count_of(op));
  if (!function) return false;
  run_.frames.back().next = op + 3 + args.size() + results.size();
  const Word closure = take(at.base, op[1]);
  Status status = run_.frames.call(*function, &closure, args, results);
  run_.heap.release(closure);
  return succeeded(std::move(status));
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<TailCall>(const uint32_t* op, Cursor&) {
  return replace_frame(run_.session.code[op[1]], nullptr, {op + 2, count_of(op)});
}

template <>
[[gnu::always_inline]] inline bool Interpreter::execute<TailCallClosure>(const uint32_t* op, Cursor&) {
  const Word closure = run_.frames.at(op[1]);
  const Words* function = callee(closure, op[1], count_of(op));
  if (!function) return false;
  Heap::retain(closure);
  const bool replaced = replace_frame(*function, &closure, {op + 2, count_of(op)});
  run_.heap.release(closure);
  return replaced;
}

const Words* Interpreter::callee(const Word& closure, uint32_t operand, uint32_t count) {
  if (closure.tag != Tag::kFunction && closure.tag != Tag::kClosure)
    return fail(run_.frames.is_not(operand, "a closure")), nullptr;
  const uint32_t function = closure.tag == Tag::kFunction ? closure.id : closure.object->id;
  if (const size_t params = run_.executable.functions[function].params.size(); params != count)
    return fail(error(fmt::format("a closure of {} parameters is called with {}", params, count))), nullptr;
  return &run_.session.code[function];
}

bool Interpreter::replace_frame(const Words& callee, const Word* closure, std::span<const uint32_t> args) {
  const size_t depth = run_.frames.depth();
  Status status = run_.frames.tail_call(callee, closure, args);
  if (run_.frames.depth() != depth) now_ = nullptr;  // the frame of the instruction has ended
  return succeeded(std::move(status));
}

// Results of one word are most frequent.
template <>
[[gnu::always_inline]] inline bool Interpreter::execute<Return>(const uint32_t* op, Cursor&) {
  const std::span values(op + 1, count_of(op));
  if (!run_.frames.back().results) [[unlikely]] {
    returned_ = values;
    return false;
  }
  return succeeded(run_.frames.leave(values));
}

Status Interpreter::end() {
  if (!failure_) return {};
  Diagnostic failure = std::move(*failure_);
  failure_.reset();
  return std::unexpected(std::move(failure));
}

bool Interpreter::fail(std::unexpected<Diagnostic> problem) {
  failure_ = std::move(problem.error());
  return false;
}

// The word where a branch or a switch goes on.
Expected<uint32_t> Interpreter::target(const uint32_t* op) {
  const Words& words = *run_.frames.back().words;
  const Word& word = run_.frames.at(op[1]);
  if (opcode_of(op) == Opcode::kBranch) {
    if (word.tag == Tag::kEmpty) return run_.frames.is_empty(op[1]);
    TENON_TRY_ASSIGN(value, operands_.tensor(op[1]));
    if (value->dtype() != DType::kBool || value->size() != 1)
      return error(fmt::format("a branch on {}, must be bool with one element", describe(*value)));
    return value->bytes()[0] != std::byte{0} ? static_cast<uint32_t>(op - words.code.data()) + 3 : op[2];
  }
  const bool fits =
      word.tag == Tag::kCell ? word.object->id == op[2] : word.tag == Tag::kConstructor && word.bits == int64_t{op[2]};
  if (!fits || word.id >= count_of(op))
    return run_.frames.is_not(op[1], fmt::format("a value of type {}", run_.executable.types[op[2]].name));
  return op[3 + word.id];
}

// What is not in the words.

bool Interpreter::execute_in_executable(const uint32_t* op) {
  const CallSite site{*run_.frames.back().words, op[1]};
  return succeeded(execute(site.words.function->code[site.instruction].operation, site));
}

Status Interpreter::invoke(const CallSite& site) {
  const Operation& operation = site.words.function->code[site.instruction].operation;
  if (const auto* kernel = std::get_if<CallKernel>(&operation)) return kernels_.invoke(site, *kernel);
  if (const auto* program = std::get_if<CallProgram>(&operation)) return launches_.invoke(site, *program);
  if (const auto* append = std::get_if<Append>(&operation)) return runtime::append(operands_, site, append->axis);
  const auto& native = std::get<CallNative>(operation);
  const auto* library = std::get_if<NativeLibrary>(&run_.session.natives[native.code]);
  return library ? kernels_.invoke(site, native, *library) : launches_.invoke(site, native);
}

Status Interpreter::execute(const Operation& operation, const CallSite& site) {
  const auto rematerialized = [&](const auto& call) { return rematerializer_->call(site, call.args, call.results); };
  return std::visit(
      Overloaded{
          [&](const CallKernel& call) { return rematerializer_ ? rematerialized(call) : kernels_.execute(site, call); },
          [&](const CallProgram& call) {
            return rematerializer_ ? rematerialized(call) : launches_.execute(site, call);
          },
          [&](const StartProgram& start) { return launches_.execute(start); },
          [&](const CallNative& call) {
            if (rematerializer_) return rematerialized(call);
            const auto* library = std::get_if<NativeLibrary>(&run_.session.natives[call.code]);
            return library ? kernels_.execute(site, call, *library) : launches_.execute(site, call);
          },
          [&](const StartNative& start) { return launches_.execute(start); },
          [&](const BindSize& bind) { return sizes_.execute(bind); },
          [&](const ComputeSize& compute) { return sizes_.execute(compute); },
          [&](const CheckShape& check) { return sizes_.execute(check); },
          [&](const CheckSize& check) { return sizes_.execute(check); },
          []<class O>(const O&) -> Status {
            static_assert(O::kFacts.form == Form::kWords, "the instruction is executed nowhere");
            return error("the instruction is in words", {}, {}, Fault::kInternal);
          }},
      operation);
}

// The loop.

template <Interpreter::After after>
[[gnu::always_inline]] inline bool Interpreter::resume(Cursor& at) {
  const Frame& frame = run_.frames.back();
  at = {frame.next, run_.frames.registers(), frame.words->code.data()};
  if (after != After::kNext || !frame.words->compiled) return true;
  at.next = run_compiled(at.next);
  return at.next != nullptr;
}

template <Interpreter::After after>
[[gnu::always_inline]] inline bool Interpreter::step(const uint32_t* op, Cursor& at) {
  if constexpr (after == After::kLazy) {
    const Prepared prepared = prepare(op, at);
    if (prepared != Prepared::kExecute) return prepared == Prepared::kDone;
  }
  switch (opcode_of(op)) {
    case Opcode::kMove: return execute<Move>(op, at);
    case Opcode::kKill: return execute<Kill>(op, at);
    case Opcode::kLoadConstant: return execute<LoadConstant>(op, at);
    case Opcode::kScalarCompute: return execute<ScalarCompute>(op, at);
    case Opcode::kJump: return execute<Jump>(op, at);
    case Opcode::kBranch: return execute<Branch>(op, at);
    case Opcode::kSwitch: return execute<Switch>(op, at);
    case Opcode::kConstruct: return execute<Construct>(op, at);
    case Opcode::kReadField: return execute<ReadField>(op, at);
    case Opcode::kMakeClosure: return execute<MakeClosure>(op, at);
    case Opcode::kMakeReference: return execute<MakeReference>(op, at);
    case Opcode::kReadReference: return execute<ReadReference>(op, at);
    case Opcode::kWriteReference: return execute<WriteReference>(op, at);
    case Opcode::kAppend: return execute<Append>(op, at);
    case Opcode::kCallFunction: return execute<CallFunction>(op, at) && resume<after>(at);
    case Opcode::kCallClosure: return execute<CallClosure>(op, at) && resume<after>(at);
    case Opcode::kTailCall: return execute<TailCall>(op, at) && resume<after>(at);
    case Opcode::kTailCallClosure: return execute<TailCallClosure>(op, at) && resume<after>(at);
    case Opcode::kReturn: return execute<Return>(op, at) && resume<after>(at);
    case Opcode::kCallKernel:
    case Opcode::kCallProgram:
    case Opcode::kCallNative:
    case Opcode::kBindSize:
    case Opcode::kComputeSize:
    case Opcode::kCheckShape:
    case Opcode::kCheckSize:
    case Opcode::kStartProgram:
    case Opcode::kStartNative: at.next = op + 2; return execute_in_executable(op);
  }
  return false;
}

// Aligned, since where its code lies in a cache line is a fifth of the time of its instructions.
template <Interpreter::After after>
[[gnu::aligned(64)]] Status Interpreter::loop(const uint32_t* from) {
  constexpr bool hooked = after == After::kHook;
  Cursor at{from, run_.frames.registers(), run_.frames.back().words->code.data()};
  if constexpr (after == After::kNext) {
    if (!resume<after>(at)) return end();
  }
  for (;;) {
    const uint32_t* op = at.next;
    if (--machine_.budget == 0) [[unlikely]] {
      now_ = op;
      TENON_TRY(refill());
    }
    [[maybe_unused]] const Words* words = hooked ? run_.frames.back().words : nullptr;
    now_ = op;
    if (!step<after>(op, at)) [[unlikely]]
      return end();
    if constexpr (hooked) TENON_TRY(show(*words, words->origin[static_cast<size_t>(op - words->code.data())]));
  }
}

Interpreter::Limits Interpreter::limits() const {
  const uint64_t most = run_.session.options.max_steps;
  return {.budget = 1, .left = most == 0 ? UINT64_MAX : most + 1};  // the first instruction checks the limits
}

Status Interpreter::execute() {
  const Limits limits = this->limits();
  machine_.budget = limits.budget;
  left_ = limits.left;
  now_ = nullptr;
  located_ = false;
  const uint32_t* from = run_.frames.back().next;
  return run_.session.options.hook ? loop<After::kHook>(from) : loop<After::kNext>(from);
}

// Instances.

Expected<bool> Interpreter::go_on(uint32_t instance, Limits& limits) {
  machine_.budget = limits.budget;
  left_ = limits.left;
  now_ = nullptr;
  located_ = false;
  waits_ = false;
  instance_ = instance;
  Status status = loop<After::kLazy>(run_.frames.back().next);
  limits = {.budget = machine_.budget, .left = left_};
  TENON_TRY(status);
  return waits_;
}

Interpreter::Prepared Interpreter::prepare(const uint32_t* op, Cursor& at) {
  const Opcode opcode = opcode_of(op);
  if (opcode == Opcode::kCallFunction && calls_->is_unit(op[1]) && op[2] == 1 &&
      !calls_->runs_at_once(op[1], {op + 3, count_of(op)}))
    return put_off(op, at);
  if (is_one_of(kMovesWords, opcode)) return Prepared::kExecute;
  if (is_one_of(kStarts, opcode)) {
    at.next = op + 2;
    return Prepared::kDone;
  }
  bool settled = true;
  if (opcode == Opcode::kScalarCompute) {
    settled = settle(at.base[register_of(op[2])]) && settle(at.base[register_of(op[3])]);
  } else if (opcode == Opcode::kBranch || opcode == Opcode::kSwitch) {
    settled = settle(at.base[op[1]]);
  } else {
    const Words& words = *run_.frames.back().words;
    const uint32_t index = words.origin[static_cast<size_t>(op - words.code.data())];
    visit_operands(words.function->code[index].operation, [&](const auto& operand, Role role, std::string_view) {
      if (role != Role::kRead && role != Role::kReadSize) return;
      visit_indices(operand, [&](Register r) { settled = settled && settle(at.base[r]); });
    });
  }
  if (settled) return Prepared::kExecute;
  if (!failure_) {
    waits_ = true;
    run_.frames.back().next = op;
    ++machine_.budget;  // it counts when it is executed
  }
  return Prepared::kStop;
}

bool Interpreter::settle(Word& slot) {
  if (slot.tag != Tag::kPending) return true;
  if (!Pending::is_executed(*slot.object) || Pending::has_failed(*slot.object)) return false;
  const Word value = settled(slot, run_.heap, run_.session.buffers);
  if (value.tag == Tag::kEmpty) return fail(run_.no_memory());
  set(slot, value);
  return true;
}

Interpreter::Prepared Interpreter::put_off(const uint32_t* op, Cursor& at) {
  const std::span args(op + 3, count_of(op));
  const Register result = op[3 + args.size()];
  if (calls_->is_full()) {
    waits_ = true;
    run_.frames.back().next = op;
    ++machine_.budget;
    return Prepared::kStop;
  }
  const auto word = calls_->add(instance_, op[1], args);
  if (!word) return fail(std::unexpected(word.error())), Prepared::kStop;
  set(at.base[result], *word);
  at.next = op + 4 + args.size();
  return Prepared::kDone;
}

// Functions that are compiled ahead of time.

static_assert(sizeof(Word) == sizeof(tn_word) && offsetof(tn_word, bits) == 8);
static_assert(static_cast<int>(Tag::kEmpty) == TN_WORD_EMPTY && static_cast<int>(Tag::kScalar) == TN_WORD_SCALAR &&
              static_cast<int>(Tag::kTensor) == TN_WORD_FIRST_OBJECT);

const uint32_t* Interpreter::run_compiled(const uint32_t* next) {
  const Words& words = *run_.frames.back().words;
  machine_.registers = reinterpret_cast<tn_word*>(run_.frames.registers());
  const uint32_t at = words.compiled(&machine_, words.origin[static_cast<size_t>(next - words.code.data())]);
  return at == TN_COMPILED_FAILED ? nullptr : words.code.data() + words.start[at];
}

int32_t Interpreter::Machine::step_now(tn_machine* machine, uint32_t instruction) {
  Interpreter& self = *static_cast<Machine*>(machine)->interpreter;
  const Words& words = *self.run_.frames.back().words;
  const uint32_t* const op = words.code.data() + words.start[instruction];
  Cursor at{op, self.run_.frames.registers(), words.code.data()};
  self.now_ = op;
  try {
    return self.step<After::kCode>(op, at) ? 0 : 1;
  } catch (const std::bad_alloc&) {  // the code has no tables for unwinding
    return self.fail(self.run_.no_memory()) ? 0 : 1;
  }
}

int32_t Interpreter::Machine::spend_now(tn_machine* machine, uint32_t instruction, uint32_t count) {
  Interpreter& self = *static_cast<Machine*>(machine)->interpreter;
  const Words& words = *self.run_.frames.back().words;
  self.now_ = words.code.data() + words.start[instruction];
  for (uint32_t i = 0; i < count; ++i) {
    if (--machine->budget != 0) continue;
    if (!self.succeeded(self.refill())) return 1;
  }
  return 0;
}

void Interpreter::Machine::release_now(tn_machine* machine, uint32_t reg) {
  static_cast<Machine*>(machine)->interpreter->run_.frames.write(reg, {});
}

uint32_t Interpreter::Machine::target_now(tn_machine* machine, uint32_t instruction) {
  Interpreter& self = *static_cast<Machine*>(machine)->interpreter;
  const Words& words = *self.run_.frames.back().words;
  const uint32_t* const op = words.code.data() + words.start[instruction];
  self.now_ = op;
  const auto target = self.target(op);
  if (target) return words.origin[*target];
  self.fail(std::unexpected(target.error()));
  return TN_COMPILED_FAILED;
}

}  // namespace tenon::runtime
