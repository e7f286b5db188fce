// Loop functions: tensor programs with explicit loops and buffers.
//
// Semantics: a function reads its parameters and fills its results, all of them buffers that its caller made. A buffer
// is dense and row-major; the size of an axis may depend on the indices before it (a ragged axis: `lengths(b)`, where
// `lengths` is a parameter of rank 1), and then its rows lie behind each other without gaps. Statements run in order.
// Indices and sizes are Dims (compiler/base/dim.h) over the function's dim variables, the loops' variables and those
// that a Let binds; a size has one value from the function's entry on, but for the loop variables in it.
//
// A Stage is what a schedule moves as a whole: it computes one point of an iteration domain of its own, whose axes take
// their values from the loops around it. Its statements see its axes, the function's dims and its own Lets, no loop. An
// axis is spatial (points of different values write different elements and read none that another writes), a reduction
// (the points update the same elements, in any order), or a scan (in order: a point may read what those before it
// wrote). A given axis is none along which points lie: it tells a point the value of a loop, from which a buffer that
// holds a part only is indexed; it changes where a value is, never which. What a point computes depends on its axes
// alone, so it may be computed again. `init` runs before the first
// point of each reduction: where all reduction axes are 0. A buffer that is made inside loops is another one in each of
// their iterations: an axis that has its value from outside of the buffer's life needs no index of it. A folded buffer
// holds the last elements along an axis alone, each at its index modulo their number; then that axis is a scan.
//
// An Intrinsic is an instruction of the machine that the function declares (Function::intrinsics): what it does is a
// loop function on tensors of constant sizes, which here are blocks of buffers. It reads all of its operands, the
// outputs too, before it writes. A back end that knows the name emits the instruction; any other runs the declaration.
//
// Arithmetic: integers wrap around in their type; division and remainder of integers truncate; a conversion of a
// float out of range and a division by 0 are errors of the program; floats are IEEE in their own type, each operation
// rounded. A shift to the right copies the sign of signed types; its distance is taken as unsigned, and one beyond the
// type's bits leaves what bit by bit shifting would.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/base/type_context.h"

namespace tenon::compiler::loop {

using runtime::DType;

enum class BufferId : uint32_t {};  // index into Function::buffers
inline size_t index(BufferId id) { return static_cast<size_t>(id); }

// --- Values: trees that never change, one scalar each ---

enum class UnaryOp : uint8_t {
  kNegate,
  kNot,
  kAbs,
  kSqrt,
  kExp,
  kLog,
  kTanh,
  kErf,
  kSin,
  kCos,
  kAtan,
  kFloor,
  kCeil,
  kRound
};
enum class BinaryOp : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kMin,
  kMax,
  kPower,  // of equal types, which they keep; an integer's exponent is taken as unsigned
  kEqual,
  kLess,
  kLessEqual,  // of equal types, to bool
  kAnd,
  kOr,  // of bools; the right one only if needed
  kBitAnd,
  kBitOr,
  kBitXor,
  kShiftLeft,
  kShiftRight,  // of integers of one type
  kByteDot,     // of i32: the four bytes of the left, as u8, times those of the right, as i8, summed up
};

struct ExprNode;
using Expr = std::shared_ptr<const ExprNode>;

struct Literal {
  double real = 0;      // of a float type
  int64_t integer = 0;  // of any other
};
// An index as a value, of type i64.
struct IndexValue {
  Dim value;
};
struct Load {
  BufferId buffer{};
  Dims indices;
};
struct Unary {
  UnaryOp op{};
  Expr value;
};
struct Binary {
  BinaryOp op{};
  Expr left, right;
};
// Only the side that is taken is evaluated: the other one may lie outside a buffer.
struct Select {
  Expr condition, then, otherwise;
};
// To the node's type: floats to integers towards zero.
struct Convert {
  Expr value;
};
// An integer that was computed, as an index in 0 .. extent - 1; an error of the program where it lies outside.
struct LetIndex {
  Symbol var{};
  Dim extent;
  Expr value, body;
};
struct ExprNode {
  DType dtype{};
  std::variant<Literal, IndexValue, Load, Unary, Binary, Select, Convert, LetIndex> form;
};

// --- Statements ---

struct Stmt;
using Body = std::vector<Stmt>;  // one after the other

enum class Mark : uint8_t { kSerial, kParallel, kVector, kUnroll };
// The variable runs from 0 to extent - 1.
struct For {
  Symbol var{};
  Dim extent;
  Mark mark = Mark::kSerial;
  Body body;
};

enum class AxisKind : uint8_t { kSpatial, kReduce, kScan, kGiven };
struct Axis {
  Symbol var{};
  Dim extent;  // may mention axes before it
  AxisKind kind = AxisKind::kSpatial;
  Dim value;  // from the loops around
};
// left < right.
struct Guard {
  Dim left, right;
  bool operator==(const Guard&) const = default;
};
struct Stage {
  Symbol name{};
  std::vector<Axis> axes;
  std::vector<Guard> where;  // of the loops: a point that fails one is none of the domain
  Body init, body;
};

struct Store {
  BufferId buffer{};
  Dims indices;
  Expr value;
};
struct If {
  Expr condition;
  Body then, otherwise;
};
// An index of its own, as LetIndex.
struct Let {
  Symbol var{};
  Dim extent;
  Expr value;
  Body body;
};
// Where a buffer lies. Of constant sizes, and on a stack small; in registers it is indexed by constants, once loops
// that are unrolled or vectors are.
enum class Scope : uint8_t { kHeap, kStack, kRegisters };
// The buffer exists, with unknown contents, while the body runs.
struct Alloc {
  BufferId buffer{};
  Scope scope = Scope::kHeap;
  Body body;
};
// An outside function on whole buffers, those that it writes last.
struct CallLibrary {
  Symbol symbol{};
  std::vector<BufferId> inputs, outputs;
};
// One index of an axis, or, with a size, the indices begin .. begin + size - 1: an axis of the operand.
struct Part {
  Dim begin;
  int64_t size = 0;
  bool operator==(const Part&) const = default;
};
struct Operand {
  BufferId buffer{};
  std::vector<Part> parts;  // of each axis of the buffer
};
// An instruction; inside a stage only.
struct Intrinsic {
  Symbol name{};
  std::vector<Operand> inputs, outputs;
};
struct Stmt {
  std::variant<For, Stage, Store, If, Let, Alloc, CallLibrary, Intrinsic> form;
};

// --- Functions ---

struct BufferAxis {
  Symbol var{};  // the index, for the sizes behind it
  Dim extent;
};
struct Buffer {
  Symbol name{};
  DType dtype{};
  std::vector<BufferAxis> axes;

  size_t rank() const { return axes.size(); }
};

struct Function {
  Symbol name{};
  std::vector<Symbol> dims;  // variables that the parameters' sizes bind
  DimBounds bounds;          // of those for which [n in 1..512] says some; they are checked on entry
  std::vector<BufferId> params, results;
  std::vector<Buffer> buffers;
  std::vector<Function> intrinsics;  // instructions that the body may use: constant sizes, and none of their own
  Body body;

  const Function* intrinsic(Symbol symbol) const {
    for (const Function& one : intrinsics)
      if (one.name == symbol) return &one;
    return nullptr;
  }
  const Buffer& buffer(BufferId id) const { return buffers[index(id)]; }
};

// How many axes of the buffer are one in its tensor: those up to the last whose size depends on an index.
size_t packed_axes(const Buffer& buffer);

// Equal but for the numbering of buffers.
bool equal(const Function& a, const Function& b);

// Every statement of a body and of those inside, each before those inside it.
template <class B, class F>
void for_each_statement(B& body, F&& visit);
// Every body directly inside a statement, in order.
template <class S, class F>
void for_each_body(S& stmt, F&& visit) {
  std::visit(
      [&](auto& node) {
        using Node = std::remove_cvref_t<decltype(node)>;
        if constexpr (std::same_as<Node, For> || std::same_as<Node, Let> || std::same_as<Node, Alloc>) {
          visit(node.body);
        } else if constexpr (std::same_as<Node, Stage>) {
          visit(node.init), visit(node.body);
        } else if constexpr (std::same_as<Node, If>) {
          visit(node.then), visit(node.otherwise);
        } else {
          static_assert(std::same_as<Node, Store> || std::same_as<Node, CallLibrary> || std::same_as<Node, Intrinsic>);
        }
      },
      stmt.form);
}
template <class B, class F>
void for_each_statement(B& body, F&& visit) {
  for (auto& stmt : body) {
    visit(stmt);
    for_each_body(stmt, [&](auto& inner) { for_each_statement(inner, visit); });
  }
}

}  // namespace tenon::compiler::loop
