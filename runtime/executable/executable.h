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
#include <vector>

#include "runtime/accelerator_program.h"
#include "runtime/executable/instructions.h"
#include "runtime/native/native.h"
#include "runtime/tensor.h"

namespace tenon::runtime {

inline constexpr uint32_t kExecutableVersion = 4;

// A size of a port that is not the same in every run.
inline constexpr int64_t kAnySize = -1;
// A named parameter or result of a function: a tensor, or any value where `type` is the text of its type.
struct Port {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape = {};                       // kAnySize: a size that the code checks
  std::vector<std::string> symbols = {};  // by axis, or empty; a Session checks that sizes of one text but ? are equal
  std::string type = {};                  // empty: a tensor
  bool operator==(const Port&) const = default;
  bool is_tensor() const { return type.empty(); }
  bool is_static() const;             // a tensor of one shape
  bool accepts(const Tensor&) const;  // by dtype and constant sizes
};
std::string to_string(const Port& port);             // "image: f32 (1, 1, 28, 28)", "x: f32 (n, 4)", "xs: List[A]"
std::string type_text(const Port& port);             // without the name
std::string to_string(std::span<const Port> ports);  // joined by commas; "none"

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
  std::string device;  // "input", "output", "cpu", "accel", "accel:tiny"
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

// Work of one instance that a run of many may put off, and join with other calls of it (Session::run_many): a function
// of tensors and scalars alone, without effects but that it may fail. Its result is a tensor or scalar, or a tuple of
// several ones.
struct Unit {
  uint32_t function = 0;
  // The function of several calls, whose parameters and results are those of `function`, and where they are own have
  // one more, leading axis; none: calls are executed one by one.
  std::optional<uint32_t> batched;
  std::vector<bool> own;          // by parameter; the calls of a batch share the others
  std::vector<bool> own_results;  // by tensor of the result
  // Without `batched`: `function` itself computes several calls. The first axes of own parameters and of results are
  // rows, which are independent of each other; a call of several has the rows of all of them along the last one of
  // these axes, one call after the other, and size 1 along the others. 0: it does not.
  uint32_t joined_axes = 0;
  // Of parameters and results whose first axis are the steps of a sequence, which other calls have more or fewer of:
  // `batched` has the axis of the longest one, and the lengths as one parameter more, an i64 of each call. Empty: of a
  // batch's calls all shapes are equal.
  std::vector<bool> sequences = {};
  std::vector<bool> sequence_results = {};
  bool operator==(const Unit&) const = default;
};

// A parameter of the entry, a tensor of one shape, whose value in the next run is a result of this one: a weight or a
// tensor of the optimizer in a step of training.
struct StateTensor {
  uint32_t param = 0, result = 0;  // of the entry
  std::optional<uint32_t> first;   // the constant that is its value in the first run; none: zeros
  bool operator==(const StateTensor&) const = default;
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
  std::vector<Unit> units = {};  // none: instances run one after another
  std::vector<StateTensor> states = {};
  Graph graph;
  bool operator==(const Executable&) const = default;

  const Function& main() const { return functions[entry]; }
};

// The configurations that programs of the executable are for, each once, in the order of the programs. They are the
// executable's.
std::vector<const spec::Config*> configurations(const Executable& executable);

// Checks all that load() guarantees, for executables made in memory; `where` names them in messages.
Status verify(const Executable& executable, std::string_view where);

// The file's bytes; the executable must verify.
Expected<std::vector<std::byte>> serialize(const Executable& executable);
Expected<Executable> deserialize(std::span<const std::byte> file, std::string_view where);

Status save(const Executable& executable, const std::filesystem::path& path);
// Its constants are parts of the memory that the file is read into, which lives as long as one of them.
Expected<Executable> load(const std::filesystem::path& path);

}  // namespace tenon::runtime
