// What the compiler makes and the runtime runs: functions of a register machine, constants, accelerator programs, and
// the notes that lead back to the model. Here as plain values; as a file (.tnx) see save() and load().
//
// Semantics of the machine: a function has `registers` registers, each empty or holding a tensor. A call fills
// registers 0 .. params-1 of a new frame with its arguments and leaves every other register empty. Instructions run in
// order; reading an empty register is an error; writing replaces. Tensors are values: no instruction changes a tensor
// that another register can see. Tuples exist only at compile time: calls and returns carry lists.
//
// Memory: a result of a native kernel may have a place in the arena that each frame of its function has, and that later
// frames take again. A place is a promise: as long as anything may read a result, no other one lies there, and none
// leaves the frame; load() proves it. A result that turns out larger than its place has memory of its own, as all other
// tensors have.
//
// A file is trusted in nothing: load() checks all that execution relies on and cannot see while it runs (indices, jump
// targets, signatures, sizes, the configuration, every instruction of an accelerator program and the device memory
// that it may touch), so that what a damaged or hostile file can cause is an error, at load or at run time. But for
// native code: that is code, and whoever runs a file that holds some trusts its maker (SessionOptions::native).
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
// Where in the arena a result lies; 0 bytes: not there.
struct Place {
  uint64_t offset = 0, bytes = 0;
  bool operator==(const Place&) const = default;
};
inline constexpr uint64_t kPlaceAlignment = 64;
// Runs a native kernel; args and results are those of its signature, in order.
struct CallNative {
  uint32_t code = 0, kernel = 0;  // indices into the executable's natives, and into the kernels of that
  Registers args, results;
  std::vector<Place> places = {};  // of the results; none: no result has one
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
// Goes on behind it where `condition`, a bool tensor of one element, is true, else at `otherwise`.
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
  std::string layer;  // the model's node that it came from; may be empty
  bool operator==(const Instruction&) const = default;
};

// A named tensor at a function's border.
struct Port {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const Port&) const = default;
};
std::string to_string(const Port& port);  // "image: f32 (1, 1, 28, 28)"

// A different name of a file for each port. Ports are named by models: with slashes, at any length, or alike but for
// what a file's name cannot hold; then the port's number tells them apart.
std::vector<std::string> file_names(std::span<const Port> ports);

struct Function {
  std::string name;
  std::vector<Port> params, results;
  uint32_t registers = 0;
  std::vector<Instruction> code;
  uint64_t arena_bytes = 0;
  bool operator==(const Function&) const = default;
};

// The model as people know it, for the report: where each operator went.
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

// All that load() promises, for executables made in memory; `where` names them in messages.
Status verify(const Executable& executable, std::string_view where);

// The file's bytes; the executable must verify.
Expected<std::vector<std::byte>> serialize(const Executable& executable);
Expected<Executable> deserialize(std::span<const std::byte> file, std::string_view where);

Status save(const Executable& executable, const std::filesystem::path& path);
Expected<Executable> load(const std::filesystem::path& path);

}  // namespace tenon::runtime
