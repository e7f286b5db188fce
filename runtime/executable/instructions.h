// The machine's instructions: one table of their operands, from which all that handles instructions by their operands
// is derived. executable.h has the semantics of the machine.
//
// Each instruction is a struct: its operands as members, `kFacts` as its row of the table, and `operands`, which visits
// the operands with their roles. The reader and the writer of files (code.cpp), the verifier (verify_instruction.cpp),
// liveness (liveness.h), the 32-bit words of runtime/vm (words.h) and the listing (compiler/lower/listing.h) visit
// them; conditions between several operands stand in the verifier. The semantics of an instruction is code of
// runtime/vm: a case of the loop over words, or a function execute().
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "runtime/attrs.h"
#include "runtime/computed_attr.h"
#include "runtime/executable/instruction_facts.h"
#include "runtime/native/signature.h"
#include "runtime/scalar_op.h"
#include "runtime/tensor.h"

namespace tenon::runtime {

using Register = uint32_t;
using Registers = std::vector<Register>;

// In the order of Operation. Append only: files store the number, and another order is another version of the format.
enum class Opcode : uint8_t {
  kCallKernel,
  kCallProgram,
  kCallNative,
  kCallFunction,
  kMove,
  kLoadConstant,
  kJump,
  kBranch,
  kKill,
  kReturn,
  kCallClosure,
  kTailCall,
  kTailCallClosure,
  kScalarCompute,
  kBindSize,
  kComputeSize,
  kCheckShape,
  kCheckSize,
  kConstruct,
  kReadField,
  kSwitch,
  kMakeClosure,
  kMakeReference,
  kReadReference,
  kWriteReference,
  kStartProgram,
  kStartNative,
  kAppend,
};

// Calls the kernel of runtime/reference with that name: results = kernel(attrs, args). The last arguments are the
// values of the attributes `computed`, each of `count` tensors, in order.
struct ComputedAttr {
  std::string name;
  ComputedKind kind = ComputedKind::kIntegers;
  uint32_t count = 1;
  bool operator==(const ComputedAttr&) const = default;
};
struct CallKernel {
  std::string kernel;
  Attrs attrs;
  Registers args, results;
  std::vector<ComputedAttr> computed = {};
  bool operator==(const CallKernel&) const = default;

  static constexpr InstructionFacts kFacts{.opcode = Opcode::kCallKernel,
                                           .text = "[{results} = ]kernel {kernel}({args})[ {attributes}]",
                                           .form = Form::kExecutable,
                                           .aliasing = Aliasing::kResults};
  static void operands(auto& o, auto&& operand) {
    operand(o.kernel, Role::kValue, "kernel");
    operand(o.attrs, Role::kValue, "attrs");
    operand(o.args, Role::kRead, "args");
    operand(o.results, Role::kWrite, "results");
    operand(o.computed, Role::kValue, "computed");
  }
};
// A tensor that `first` begins and `second` ends, one after the other along `axis`; all axes before it have size 1, so
// that the elements of the first come first in memory. Where the register of the first is emptied right after the
// instruction, or is the result's, and nothing else has its value, the second is written after it if there is room;
// else both are copied into memory with room for more: for `capacity` bytes, or where that is 0 for twice the result.
struct Append {
  Register to = 0, first = 0, second = 0;
  uint32_t axis = 0;
  uint64_t capacity = 0;
  bool operator==(const Append&) const = default;

  static constexpr InstructionFacts kFacts{.opcode = Opcode::kAppend,
                                           .text = "{to} = append {first}, {second} along {axis}, room for {capacity}",
                                           .aliasing = Aliasing::kResults};
  static void operands(auto& o, auto&& operand) {
    operand(o.to, Role::kWrite, "to");
    operand(o.first, Role::kRead, "first");
    operand(o.second, Role::kRead, "second");
    operand(o.axis, Role::kValue, "axis");
    operand(o.capacity, Role::kValue, "capacity");
  }
};
// Runs accelerator program `program`; args and results are its inputs and outputs, in order.
struct CallProgram {
  uint32_t program = 0;
  Registers args, results;
  bool operator==(const CallProgram&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kCallProgram, .text = "[{results} = ]program {program}({args})", .form = Form::kExecutable};
  static void operands(auto& o, auto&& operand) {
    operand(o.program, Role::kProgram, "program");
    operand(o.args, Role::kRead, "args");
    operand(o.results, Role::kWrite, "results");
  }
};
// Copies the inputs of a program to the device and starts it, so that the next instructions run beside it. The
// CallProgram of the same program and arguments, further on, waits for it and has the results. A machine may ignore it.
struct StartProgram {
  uint32_t program = 0;
  Registers args;
  bool operator==(const StartProgram&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kStartProgram, .text = "start program {program}({args})", .form = Form::kExecutable};
  static void operands(auto& o, auto&& operand) {
    operand(o.program, Role::kProgram, "program");
    operand(o.args, Role::kRead, "args");
  }
};

// Part of the arena where a result is stored; 0 bytes: the result is not in the arena.
struct ArenaSlot {
  uint64_t offset = 0, bytes = 0;
  bool operator==(const ArenaSlot&) const = default;
};
inline constexpr uint64_t kArenaAlignment = 64;
// Runs a native kernel; args and results are those of its signature, in order.
struct CallNative {
  uint32_t code = 0, kernel = 0;  // indices into the executable's natives, and into the kernels of that library
  Registers args, results;
  std::vector<ArenaSlot> slots = {};  // of the results; empty: no result is in the arena
  bool operator==(const CallNative&) const = default;

  static constexpr InstructionFacts kFacts{.opcode = Opcode::kCallNative,
                                           .text = "[{results} = ]native {kernel}({args})[ at {slots}]",
                                           .form = Form::kExecutable};
  static void operands(auto& o, auto&& operand) {
    operand(o.code, Role::kNative, "code");
    operand(o.kernel, Role::kKernel, "kernel");
    operand(o.args, Role::kRead, "args");
    operand(o.results, Role::kWrite, "results");
    operand(o.slots, Role::kValue, "slots");
  }
};
// StartProgram for a kernel of a GPU and its CallNative; of other kernels it does nothing.
struct StartNative {
  uint32_t code = 0, kernel = 0;
  Registers args;
  bool operator==(const StartNative&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kStartNative, .text = "start native {kernel}({args})", .form = Form::kExecutable};
  static void operands(auto& o, auto&& operand) {
    operand(o.code, Role::kNative, "code");
    operand(o.kernel, Role::kKernel, "kernel");
    operand(o.args, Role::kRead, "args");
  }
};

// Calls function `function` in a frame of its own.
struct CallFunction {
  uint32_t function = 0;
  Registers args, results;
  bool operator==(const CallFunction&) const = default;

  static constexpr InstructionFacts kFacts{.opcode = Opcode::kCallFunction,
                                           .text = "[{results} = ]call {function}({args})",
                                           .flow = Flow::kCall,
                                           .aliasing = Aliasing::kAnything};
  static void operands(auto& o, auto&& operand) {
    operand(o.function, Role::kFunction, "function");
    operand(o.args, Role::kRead, "args");
    operand(o.results, Role::kWrite, "results");
  }
};
// Calls a closure in a frame of its own. A closure of another number of parameters is an error.
struct CallClosure {
  Register closure = 0;
  Registers args, results;
  bool operator==(const CallClosure&) const = default;

  static constexpr InstructionFacts kFacts{.opcode = Opcode::kCallClosure,
                                           .text = "[{results} = ]call {closure}({args})",
                                           .flow = Flow::kCall,
                                           .aliasing = Aliasing::kAnything};
  static void operands(auto& o, auto&& operand) {
    operand(o.closure, Role::kRead, "closure");
    operand(o.args, Role::kRead, "args");
    operand(o.results, Role::kWrite, "results");
  }
};
// Calls a function in place of this frame: its results are those of this frame, which ends.
struct TailCall {
  uint32_t function = 0;
  Registers args;
  bool operator==(const TailCall&) const = default;

  static constexpr InstructionFacts kFacts{.opcode = Opcode::kTailCall,
                                           .text = "tail call {function}({args})",
                                           .flow = Flow::kLeave,
                                           .aliasing = Aliasing::kAnything};
  static void operands(auto& o, auto&& operand) {
    operand(o.function, Role::kFunction, "function");
    operand(o.args, Role::kRead, "args");
  }
};
struct TailCallClosure {
  Register closure = 0;
  Registers args;
  bool operator==(const TailCallClosure&) const = default;

  static constexpr InstructionFacts kFacts{.opcode = Opcode::kTailCallClosure,
                                           .text = "tail call {closure}({args})",
                                           .flow = Flow::kLeave,
                                           .aliasing = Aliasing::kAnything};
  static void operands(auto& o, auto&& operand) {
    operand(o.closure, Role::kRead, "closure");
    operand(o.args, Role::kRead, "args");
  }
};
struct Return {
  Registers values;
  bool operator==(const Return&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kReturn, .text = "return {values}", .flow = Flow::kLeave, .aliasing = Aliasing::kAnything};
  static void operands(auto& o, auto&& operand) { operand(o.values, Role::kRead, "values"); }
};

struct Move {
  Register to = 0, from = 0;
  bool operator==(const Move&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kMove, .text = "{to} = {from}", .aliasing = Aliasing::kResults};
  static void operands(auto& o, auto&& operand) {
    operand(o.to, Role::kWrite, "to");
    operand(o.from, Role::kRead, "from");
  }
};
struct LoadConstant {
  Register to = 0;
  uint32_t constant = 0;
  bool operator==(const LoadConstant&) const = default;

  static constexpr InstructionFacts kFacts{.opcode = Opcode::kLoadConstant, .text = "{to} = constant {constant}"};
  static void operands(auto& o, auto&& operand) {
    operand(o.to, Role::kWrite, "to");
    operand(o.constant, Role::kConstant, "constant");
  }
};
// Empties registers, so that their tensors are freed after their last use.
struct Kill {
  Registers registers;
  bool operator==(const Kill&) const = default;

  static constexpr InstructionFacts kFacts{.opcode = Opcode::kKill, .text = "kill {registers}"};
  static void operands(auto& o, auto&& operand) { operand(o.registers, Role::kErase, "registers"); }
};

struct Jump {
  uint32_t target = 0;  // index of an instruction of this function
  bool operator==(const Jump&) const = default;

  static constexpr InstructionFacts kFacts{.opcode = Opcode::kJump, .text = "jump {target}", .flow = Flow::kJump};
  static void operands(auto& o, auto&& operand) { operand(o.target, Role::kTarget, "target"); }
};
// Continues with the next instruction if `condition`, a bool tensor of one element, is true, else at `otherwise`.
struct Branch {
  Register condition = 0;
  uint32_t otherwise = 0;
  bool operator==(const Branch&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kBranch, .text = "branch {condition} else {otherwise}", .flow = Flow::kBranch};
  static void operands(auto& o, auto&& operand) {
    operand(o.condition, Role::kRead, "condition");
    operand(o.otherwise, Role::kTarget, "otherwise");
  }
};
// Continues at the target of the value's constructor; a value of another type is an error.
struct Switch {
  Register value = 0;
  uint32_t type = 0;
  std::vector<uint32_t> targets;  // by constructor
  bool operator==(const Switch&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kSwitch, .text = "switch {value}: {type} to {targets}", .flow = Flow::kJump};
  static void operands(auto& o, auto&& operand) {
    operand(o.value, Role::kRead, "value");
    operand(o.type, Role::kType, "type");
    operand(o.targets, Role::kTarget, "targets");
  }
};

struct ScalarCompute {
  ScalarOp op = ScalarOp::kAdd;
  DType dtype = DType::kI64;
  Register to = 0, a = 0, b = 0;
  bool operator==(const ScalarCompute&) const = default;

  static constexpr InstructionFacts kFacts{.opcode = Opcode::kScalarCompute, .text = "{to} = {op} {dtype} {a}, {b}"};
  static void operands(auto& o, auto&& operand) {
    operand(o.op, Role::kValue, "op");
    operand(o.dtype, Role::kValue, "dtype");
    operand(o.to, Role::kWrite, "to");
    operand(o.a, Role::kRead, "a");
    operand(o.b, Role::kRead, "b");
  }
};

// The value that `size` had to have so that `factor * size + offset` is the size of an axis of a tensor: a scalar i64,
// or an unknown size where there is no such integer >= 0. The programs read `sizes` by index; none has an element or an
// index.
struct BindSize {
  Register to = 0, tensor = 0;
  uint32_t axis = 0;
  Registers sizes;
  Size factor, offset;
  bool operator==(const BindSize&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kBindSize,
      .text = "{to} = n where axis {axis} of {tensor} is {factor} * n + {offset}[ of ({sizes})]",
      .form = Form::kExecutable};
  static void operands(auto& o, auto&& operand) {
    operand(o.to, Role::kWrite, "to");
    operand(o.tensor, Role::kRead, "tensor");
    operand(o.axis, Role::kValue, "axis");
    operand(o.sizes, Role::kReadSize, "sizes");
    operand(o.factor, Role::kValue, "factor");
    operand(o.offset, Role::kValue, "offset");
  }
};
// A size computed from other sizes; unknown where one of them is, or where the program is empty. A check against an
// unknown size holds.
struct ComputeSize {
  Register to = 0;
  Registers sizes;
  Size value;
  bool operator==(const ComputeSize&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kComputeSize, .text = "{to} = size {value} of ({sizes})", .form = Form::kExecutable};
  static void operands(auto& o, auto&& operand) {
    operand(o.to, Role::kWrite, "to");
    operand(o.sizes, Role::kReadSize, "sizes");
    operand(o.value, Role::kValue, "value");
  }
};
// Checks a tensor's dtype and sizes: `axes` has a program over `sizes` for each axis; an empty one, or one whose value
// is unknown, allows every size, unless the check is strict. `known` must be known sizes. The error is "SUBJECT is
// FOUND, must be EXPECTED".
struct CheckShape {
  Register tensor = 0;
  DType dtype = DType::kF32;
  std::vector<Size> axes;
  Registers sizes, known;
  bool strict = false;
  std::string subject, expected;
  bool operator==(const CheckShape&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kCheckShape,
      .text =
          "check {tensor} is {dtype} ({axes})[ of ({sizes})][, known ({known})][, {strictly}], else "
          "\"{subject} is ..., must be {expected}\"",
      .form = Form::kExecutable};
  static void operands(auto& o, auto&& operand) {
    operand(o.tensor, Role::kRead, "tensor");
    operand(o.dtype, Role::kValue, "dtype");
    operand(o.sizes, Role::kReadSize, "sizes");
    operand(o.axes, Role::kValue, "axes");
    operand(o.known, Role::kRead, "known");
    operand(o.strict, Role::kValue, "strictly");
    operand(o.subject, Role::kValue, "subject");
    operand(o.expected, Role::kValue, "expected");
  }
};
// Checks that a size, if it is known, is in low .. high.
struct CheckSize {
  Register size = 0;
  int64_t low = INT64_MIN, high = INT64_MAX;
  std::string subject;
  bool operator==(const CheckSize&) const = default;

  static constexpr InstructionFacts kFacts{.opcode = Opcode::kCheckSize,
                                           .text = "check {size} in {low}..{high}, else \"{subject} is ...\"",
                                           .form = Form::kExecutable};
  static void operands(auto& o, auto&& operand) {
    operand(o.size, Role::kRead, "size");
    operand(o.low, Role::kValue, "low");
    operand(o.high, Role::kValue, "high");
    operand(o.subject, Role::kValue, "subject");
  }
};

inline constexpr uint32_t kTupleType = UINT32_MAX;  // the type of tuples of any length, whose constructor is 0
struct Construct {
  Register to = 0;
  uint32_t type = kTupleType;  // index into the executable's types
  uint32_t constructor = 0;    // of the type
  Registers fields;
  bool operator==(const Construct&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kConstruct, .text = "{to} = {name}({fields})", .aliasing = Aliasing::kAnything};
  static void operands(auto& o, auto&& operand) {
    operand(o.to, Role::kWrite, "to");
    operand(o.type, Role::kValue, "type");
    operand(o.constructor, Role::kValue, "constructor");
    operand(o.fields, Role::kRead, "fields");
  }
};
// A field of a constructed value; a value of fewer fields is an error.
struct ReadField {
  Register to = 0, from = 0;
  uint32_t index = 0;
  bool operator==(const ReadField&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kReadField, .text = "{to} = {from}.{index}", .aliasing = Aliasing::kAnything};
  static void operands(auto& o, auto&& operand) {
    operand(o.to, Role::kWrite, "to");
    operand(o.from, Role::kRead, "from");
    operand(o.index, Role::kValue, "index");
  }
};
struct MakeClosure {
  Register to = 0;
  uint32_t function = 0;
  Registers captures;
  bool operator==(const MakeClosure&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kMakeClosure, .text = "{to} = closure {function}({captures})", .aliasing = Aliasing::kAnything};
  static void operands(auto& o, auto&& operand) {
    operand(o.to, Role::kWrite, "to");
    operand(o.function, Role::kFunction, "function");
    operand(o.captures, Role::kRead, "captures");
  }
};
struct MakeReference {
  Register to = 0, value = 0;
  bool operator==(const MakeReference&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kMakeReference, .text = "{to} = ref {value}", .aliasing = Aliasing::kAnything};
  static void operands(auto& o, auto&& operand) {
    operand(o.to, Role::kWrite, "to");
    operand(o.value, Role::kRead, "value");
  }
};
struct ReadReference {
  Register to = 0, reference = 0;
  bool operator==(const ReadReference&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kReadReference, .text = "{to} = read {reference}", .aliasing = Aliasing::kAnything};
  static void operands(auto& o, auto&& operand) {
    operand(o.to, Role::kWrite, "to");
    operand(o.reference, Role::kRead, "reference");
  }
};
struct WriteReference {
  Register reference = 0, value = 0;
  bool operator==(const WriteReference&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kWriteReference, .text = "write {reference}, {value}", .aliasing = Aliasing::kAnything};
  static void operands(auto& o, auto&& operand) {
    operand(o.reference, Role::kRead, "reference");
    operand(o.value, Role::kRead, "value");
  }
};

using Operation = std::variant<CallKernel, CallProgram, CallNative, CallFunction, Move, LoadConstant, Jump, Branch,
                               Kill, Return, CallClosure, TailCall, TailCallClosure, ScalarCompute, BindSize,
                               ComputeSize, CheckShape, CheckSize, Construct, ReadField, Switch, MakeClosure,
                               MakeReference, ReadReference, WriteReference, StartProgram, StartNative, Append>;
inline constexpr size_t kOpcodes = std::variant_size_v<Operation>;

// The facts of all instructions, by opcode.
std::span<const InstructionFacts> instruction_facts();
inline const InstructionFacts& facts(const Operation& operation) { return instruction_facts()[operation.index()]; }

// Visits the operands of an operation by `visit(member, role, name)`, in their order.
void visit_operands(auto& operation, auto&& visit) {
  std::visit([&](auto& o) { o.operands(o, visit); }, operation);
}
// Visits the elements of an operand that is an index or a list of them: registers, targets; of others nothing.
void visit_indices(auto& operand, auto&& visit) {
  using T = std::remove_cvref_t<decltype(operand)>;
  if constexpr (std::same_as<T, uint32_t>) visit(operand);
  if constexpr (std::same_as<T, std::vector<uint32_t>>) {
    for (auto& index : operand) visit(index);
  }
}

// Whether the next instruction in the code may run after this one.
inline bool falls_through(const Operation& operation) {
  const Flow flow = facts(operation).flow;
  return flow != Flow::kJump && flow != Flow::kLeave;
}
// Whether another instruction than the next one may run after this one, in this frame or instead of it.
inline bool ends_block(const Operation& operation) {
  return !falls_through(operation) || facts(operation).flow == Flow::kBranch;
}

struct Instruction {
  Operation operation;
  std::string layer;  // the model's node of the instruction; may be empty
  bool operator==(const Instruction&) const = default;
};

}  // namespace tenon::runtime
