// An executable: functions of a register machine, constants, accelerator programs, native code, and the notes that lead
// back to the model. The compiler makes it and the runtime runs it. Here as plain values; as a file (.tnx) see save()
// and load().
//
// Semantics of the machine: a function has `registers` registers, each empty or holding one word: a tensor, a
// constructed value, a closure, a reference, or a size that nothing determines. A call fills registers 0 .. params-1 of
// a new frame with its arguments, the next ones with the captured words of a closure and with the closure itself,
// and leaves every other register empty. Instructions run in order; reading an empty register is an error; writing
// replaces. All values but references are immutable: no instruction changes a value that another register can see. A
// tuple is a constructed value of the type kTupleType where it is one word; calls and returns carry lists of words.
// Every instruction checks the kinds of the words that it reads, so that no file is trusted to be well typed. Frames
// are not on the C++ stack. Reference cycles are collected; all other memory is counted.
//
// Memory: each frame of a function has an arena, which later frames reuse, and a result of a native kernel may have a
// slot in it. As long as anything may read a result, no other result is stored in its slot, and no result in a slot
// escapes the frame; load() proves both. A result that is larger than its slot at run time has memory of its own, as
// all other tensors have.
//
// A file is trusted in nothing: load() checks all that execution relies on and does not check while it runs (indices,
// jump targets, signatures, sizes, the configuration, every instruction of an accelerator program and the device memory
// that it may touch), so that a damaged or hostile file can cause nothing but an error, at load or at run time. The one
// exception is native code: a user who runs a file with native code trusts its maker (SessionOptions::native).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/accelerator_program.h"
#include "runtime/attrs.h"
#include "runtime/computed_attr.h"
#include "runtime/native/native.h"
#include "runtime/scalar_op.h"
#include "runtime/tensor.h"

namespace tenon::runtime {

inline constexpr uint32_t kExecutableVersion = 2;

using Register = uint32_t;
using Registers = std::vector<Register>;

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
};
// An integer attribute that a `concat` of two operands may have: the bytes to make room for where the machine makes its
// first operand longer in place; 0: not known.
inline constexpr const char* kCapacity = "capacity";
// Runs accelerator program `program`; args and results are its inputs and outputs, in order.
struct CallProgram {
  uint32_t program = 0;
  Registers args, results;
  bool operator==(const CallProgram&) const = default;
};
// Copies the inputs of a program to the device and starts it, so that the next instructions run beside it. The
// CallProgram of the same program and arguments, further on, waits for it and has the results. A machine may ignore it.
struct StartProgram {
  uint32_t program = 0;
  Registers args;
  bool operator==(const StartProgram&) const = default;
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
};
// The same for a kernel of a GPU and its CallNative; of other kernels it does nothing.
struct StartNative {
  uint32_t code = 0, kernel = 0;
  Registers args;
  bool operator==(const StartNative&) const = default;
};
// Calls function `function` in a frame of its own.
struct CallFunction {
  uint32_t function = 0;
  Registers args, results;
  bool operator==(const CallFunction&) const = default;
};
struct Move {
  Register to = 0, from = 0;
  bool operator==(const Move&) const = default;
};
struct LoadConstant {
  Register to = 0;
  uint32_t constant = 0;
  bool operator==(const LoadConstant&) const = default;
};
struct Jump {
  uint32_t target = 0;  // index of an instruction of this function
  bool operator==(const Jump&) const = default;
};
// Continues with the next instruction if `condition`, a bool tensor of one element, is true, else at `otherwise`.
struct Branch {
  Register condition = 0;
  uint32_t otherwise = 0;
  bool operator==(const Branch&) const = default;
};
// Empties registers, so that their tensors are freed after their last use.
struct Kill {
  Registers registers;
  bool operator==(const Kill&) const = default;
};
struct Return {
  Registers values;
  bool operator==(const Return&) const = default;
};

// Calls a closure in a frame of its own. A closure of another number of parameters is an error.
struct CallClosure {
  Register closure = 0;
  Registers args, results;
  bool operator==(const CallClosure&) const = default;
};
// Calls a function in place of this frame: its results are those of this frame, which ends.
struct TailCall {
  uint32_t function = 0;
  Registers args;
  bool operator==(const TailCall&) const = default;
};
struct TailCallClosure {
  Register closure = 0;
  Registers args;
  bool operator==(const TailCallClosure&) const = default;
};

struct ScalarCompute {
  ScalarOp op = ScalarOp::kAdd;
  DType dtype = DType::kI64;
  Register to = 0, a = 0, b = 0;
  bool operator==(const ScalarCompute&) const = default;
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
};
// A size computed from other sizes; unknown where one of them is, or where the program is empty. A check against an
// unknown size holds.
struct ComputeSize {
  Register to = 0;
  Registers sizes;
  Size value;
  bool operator==(const ComputeSize&) const = default;
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
};
// Checks that a size, if it is known, is in low .. high.
struct CheckSize {
  Register size = 0;
  int64_t low = INT64_MIN, high = INT64_MAX;
  std::string subject;
  bool operator==(const CheckSize&) const = default;
};

inline constexpr uint32_t kTupleType = UINT32_MAX;  // the type of tuples of any length, whose constructor is 0
struct Construct {
  Register to = 0;
  uint32_t type = kTupleType;  // index into the executable's types
  uint32_t constructor = 0;    // of the type
  Registers fields;
  bool operator==(const Construct&) const = default;
};
// A field of a constructed value; a value of fewer fields is an error.
struct ReadField {
  Register to = 0, from = 0;
  uint32_t index = 0;
  bool operator==(const ReadField&) const = default;
};
// Continues at the target of the value's constructor; a value of another type is an error.
struct Switch {
  Register value = 0;
  uint32_t type = 0;
  std::vector<uint32_t> targets;  // by constructor
  bool operator==(const Switch&) const = default;
};
struct MakeClosure {
  Register to = 0;
  uint32_t function = 0;
  Registers captures;
  bool operator==(const MakeClosure&) const = default;
};
struct MakeReference {
  Register to = 0, value = 0;
  bool operator==(const MakeReference&) const = default;
};
struct ReadReference {
  Register to = 0, reference = 0;
  bool operator==(const ReadReference&) const = default;
};
struct WriteReference {
  Register reference = 0, value = 0;
  bool operator==(const WriteReference&) const = default;
};

using Operation = std::variant<CallKernel, CallProgram, CallNative, CallFunction, Move, LoadConstant, Jump, Branch,
                               Kill, Return, CallClosure, TailCall, TailCallClosure, ScalarCompute, BindSize,
                               ComputeSize, CheckShape, CheckSize, Construct, ReadField, Switch, MakeClosure,
                               MakeReference, ReadReference, WriteReference, StartProgram, StartNative>;

struct Instruction {
  Operation operation;
  std::string layer;  // the model's node of the instruction; may be empty
  bool operator==(const Instruction&) const = default;
};

// A size of a port that is not the same in every run.
inline constexpr int64_t kAnySize = -1;
// A named parameter or result of a function: a tensor, or any value where `type` is the text of its type.
struct Port {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape = {};                       // kAnySize: a size that the code checks
  std::vector<std::string> symbols = {};  // by axis, for readers: the expression of a size that varies; or empty
  std::string type = {};                  // empty: a tensor
  bool operator==(const Port&) const = default;
  bool is_tensor() const { return type.empty(); }
  bool is_static() const;             // a tensor of one shape
  bool accepts(const Tensor&) const;  // by dtype and constant sizes
};
std::string to_string(const Port& port);  // "image: f32 (1, 1, 28, 28)", "x: f32 (n, 4)", "xs: List[A]"
std::string type_text(const Port& port);  // without the name

// A different file name for each port. Models name ports with slashes, at any length, or with names that differ only in
// characters that a file name cannot hold; then the index of the port is appended.
std::vector<std::string> file_names(std::span<const Port> ports);

struct Function {
  std::string name;
  std::vector<Port> params = {}, results = {};
  uint32_t registers = 0;
  std::vector<Instruction> code = {};
  uint64_t arena_bytes = 0;
  uint32_t captures = 0;  // of a closure of this function: the words in the registers behind the parameters
  bool self = false;      // the closure itself is in the next register
  bool operator==(const Function&) const = default;
  // The registers that are filled when a frame begins.
  uint64_t filled() const { return uint64_t{captures} + params.size() + (self ? 1 : 0); }
};

// A defined type: what instructions need to know of it, and its names for readers.
struct DataConstructor {
  std::string name;
  uint32_t fields = 0;
  bool operator==(const DataConstructor&) const = default;
};
struct DataType {
  std::string name;
  std::vector<DataConstructor> constructors;
  bool operator==(const DataType&) const = default;
};

// The model as a graph of operators, for the report: which device each operator runs on.
struct GraphNode {
  std::string name;    // unique; the `layer` of instructions and the name of LayerNotes
  std::string op;      // as "conv2d"
  std::string device;  // "input", "output", "cpu", "accel"
  std::string detail;  // for people: shape and type, as "i8 (1, 16, 28, 28)", attributes
  bool operator==(const GraphNode&) const = default;
};
struct GraphEdge {
  uint32_t from = 0, to = 0;  // indices of nodes
  bool operator==(const GraphEdge&) const = default;
};
struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
  bool operator==(const Graph&) const = default;
};

// All functions of an executable, compiled ahead of time to a shared object (compiled_code.h). Their instructions stay
// in the executable: the machine executes them where it does not use the code.
struct CompiledCode {
  std::string triple;  // "x86_64-unknown-linux-gnu"
  std::vector<std::byte> object;
  bool operator==(const CompiledCode&) const = default;
};

struct Executable {
  std::string name;
  std::vector<std::pair<std::string, std::string>> facts;  // free key-value rows: source model, compiler version
  std::vector<Function> functions;
  uint32_t entry = 0;  // index of the function that a session runs
  std::vector<DataType> types;
  std::vector<Tensor> constants;
  std::vector<AcceleratorProgram> programs;
  std::vector<NativeCode> natives;
  std::optional<CompiledCode> compiled = {};
  Graph graph;
  bool operator==(const Executable&) const = default;

  const Function& main() const { return functions[entry]; }
};

// Checks all that load() guarantees, for executables made in memory; `where` names them in messages.
Status verify(const Executable& executable, std::string_view where);

// The file's bytes; the executable must verify.
Expected<std::vector<std::byte>> serialize(const Executable& executable);
Expected<Executable> deserialize(std::span<const std::byte> file, std::string_view where);

Status save(const Executable& executable, const std::filesystem::path& path);
Expected<Executable> load(const std::filesystem::path& path);

}  // namespace tenon::runtime
