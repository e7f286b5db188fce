// An executable: functions of a register machine, constants, accelerator programs, native code, and the notes that lead
// back to the model. The compiler makes it and the runtime runs it. Here as plain values; as a file (.tnx) see save()
// and load().
//
// Semantics of the machine: a function has `registers` registers, each empty or holding a tensor. A call fills
// registers 0 .. params-1 of a new frame with its arguments and leaves every other register empty. Instructions run in
// order; reading an empty register is an error; writing replaces. Tensors are values: no instruction changes a tensor
// that another register can see. Tuples exist only at compile time: calls and returns carry lists.
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
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/accelerator_program.h"
#include "runtime/attrs.h"
#include "runtime/native/native.h"
#include "runtime/tensor.h"

namespace tenon::runtime {

inline constexpr uint32_t kExecutableVersion = 1;

using Register = uint32_t;
using Registers = std::vector<Register>;

// Calls the kernel of runtime/reference with that name: results = kernel(attrs, args).
struct CallKernel {
  std::string kernel;
  Attrs attrs;
  Registers args, results;
  bool operator==(const CallKernel&) const = default;
};
// Runs accelerator program `program`; args and results are its inputs and outputs, in order.
struct CallProgram {
  uint32_t program = 0;
  Registers args, results;
  bool operator==(const CallProgram&) const = default;
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

using Operation =
    std::variant<CallKernel, CallProgram, CallNative, CallFunction, Move, LoadConstant, Jump, Branch, Kill, Return>;

struct Instruction {
  Operation operation;
  std::string layer;  // the model's node of the instruction; may be empty
  bool operator==(const Instruction&) const = default;
};

// A named parameter or result of a function.
struct Port {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const Port&) const = default;
};
std::string to_string(const Port& port);  // "image: f32 (1, 1, 28, 28)"

// A different file name for each port. Models name ports with slashes, at any length, or with names that differ only in
// characters that a file name cannot hold; then the index of the port is appended.
std::vector<std::string> file_names(std::span<const Port> ports);

struct Function {
  std::string name;
  std::vector<Port> params, results;
  uint32_t registers = 0;
  std::vector<Instruction> code;
  uint64_t arena_bytes = 0;
  bool operator==(const Function&) const = default;
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

struct Executable {
  std::string name;
  std::vector<std::pair<std::string, std::string>> facts;  // free key-value rows: source model, compiler version
  std::vector<Function> functions;
  uint32_t entry = 0;  // index of the function that a session runs
  std::vector<Tensor> constants;
  std::vector<AcceleratorProgram> programs;
  std::vector<NativeCode> natives;
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
