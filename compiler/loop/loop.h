// Loop functions: tensor programs with explicit loops and buffers.
//
// Semantics: a function reads its parameters and fills its results, all of them buffers that its caller made. A buffer
// is dense and row-major; the size of an axis may depend on the preceding indices (a ragged axis: `lengths(b)`, where
// `lengths` is a parameter of rank 1); its rows are then stored contiguously, one after another. Statements run in
// order. Indices and sizes are Dims (compiler/base/dim.h) over the function's dim variables, the loops' variables and
// the variables that a Let binds; apart from loop variables in it, a size is constant from the function's entry on.
//
// A Stage is the unit that a schedule moves: it computes one point of its own iteration domain, whose axes take their
// values from the enclosing loops. Its statements see its axes, the function's dims and its own Lets, but no loop. An
// axis is spatial (points of different values write different elements and read no element that another point writes),
// a reduction (the points update the same elements, in any order), or a scan (in order: a point may read elements that
// earlier points wrote). A given axis adds no points to the domain: it passes the value of a loop to a point, which
// needs it to index a buffer that holds only a part; it changes where a value is stored, never which value. The value
// of a point depends on its axes alone, so a point may be computed again. `init` runs before the first point of each
// reduction: where all reduction axes are 0. A buffer that is allocated inside loops is a different buffer in each of
// their iterations: an axis whose value is fixed throughout the buffer's live range needs no index of the buffer. A
// folded buffer holds only the last elements along an axis, each at its index modulo their number; the axis is then a
// scan.
//
// A loop bound to a GPU's blocks or threads (block_x .. thread_z) has the iterations of a parallel loop. An outermost
// nest of block loops is one launch; in a block, a nest of thread loops is executed by its threads. Nests that follow
// one another without a barrier, a statement that all threads of a block execute, are one phase: threads run in any
// order, and none may access what another one of the phase writes. A thread that a nest does not bind has the index 0.
// For a block's registers each nest is a phase, and a thread may read those of others of its warp, of the same y and z,
// which a GPU shuffles. Executed serially, the statements in their order, a bound function has the same results.
//
// An asynchronous stage copies elements into shared memory while its thread goes on. Until they have arrived they are
// in flight: they may be neither read nor written, nor may what they are copied from be written. A commit, a statement
// of a block, closes the group of the copies that each thread has begun since the last commit; after a wait(n), all but
// the last n groups of each thread have arrived, for this thread. Others may access the elements after a barrier.
//
// An Intrinsic is an instruction of the machine that the function declares (Function::intrinsics): its semantics are a
// loop function on tensors of constant sizes, which at the use are blocks of buffers. It reads all of its operands,
// including the outputs, before it writes. A back end that supports the instruction emits it; any other executes the
// declaration. An inexact instruction adds products of floats in an unspecified order and precision: where all sums are
// finite and no term underflows, each element of its result differs from the exact sum by at most the bound times the
// sum of the terms' magnitudes, that of the element before it included. The declaration's own order is one such result.
//
// Arithmetic: integers wrap around in their type; division and remainder of integers truncate; a conversion of a
// float out of range and a division by 0 are errors of the program; floats are IEEE in their own type, each operation
// rounded. A shift to the right copies the sign of signed types; its distance is unsigned; a distance beyond the
// type's bits gives the result of shifting bit by bit.
#pragma once

#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/base/type_context.h"
#include "support/function_ref.h"

namespace tenon::compiler::loop {

using runtime::DType;

// The dtypes with arithmetic.
inline constexpr runtime::DTypes kComputedTypes = runtime::kAnyDType.without(runtime::kStorageTypes);
// The dtypes of buffers and expressions. f16 and bf16 have no arithmetic: their values are loaded, stored, selected,
// and converted to and from f32.
inline constexpr runtime::DTypes kElementTypes = kComputedTypes | runtime::kShortFloats;

enum class BufferId : uint32_t {};  // index into Function::buffers
inline size_t index(BufferId id) { return static_cast<size_t>(id); }

// --- Values: immutable trees, one scalar each ---

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
  kPower,  // of equal types, to that type; an integer's exponent is unsigned
  kEqual,
  kLess,
  kLessEqual,  // of equal types, to bool
  kAnd,
  kOr,  // of bools; the right operand is evaluated only if needed
  kBitAnd,
  kBitOr,
  kBitXor,
  kShiftLeft,
  kShiftRight,  // of integers of one type
  kByteDot,     // of i32: the dot product of the left operand's four bytes, as u8, and the right operand's, as i8
  kByteDotSaturating,  // the same, where the sum of the first two products, and that of the others, saturates to i16
  kInt16Dot,           // of i32: the dot product of the two i16 of each operand, which wraps
};

struct ExprNode;
using Expr = std::shared_ptr<const ExprNode>;

struct Literal {
  double real = 0;      // of a float type
  int64_t integer = 0;  // of any other type
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
// Only the selected operand is evaluated: the other one may access elements outside a buffer.
struct Select {
  Expr condition, then, otherwise;
};
// Conversion to the node's type: floats to integers towards zero.
struct Convert {
  Expr value;
};
// Binds a computed integer as an index in 0 .. extent - 1; a value outside this range is an error of the program.
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
using Body = std::vector<Stmt>;  // executed in order

// How the iterations of a loop are executed.
enum class LoopKind : uint8_t {
  kSerial,
  kParallel,
  kVectorized,
  kUnrolled,
  kBlockX,
  kBlockY,
  kBlockZ,
  kThreadX,
  kThreadY,
  kThreadZ
};
// By their ids.
inline constexpr std::string_view kLoopKindNames[] = {"serial",  "parallel", "vector",   "unroll",   "block_x",
                                                      "block_y", "block_z",  "thread_x", "thread_y", "thread_z"};
inline std::string_view name(LoopKind kind) { return kLoopKindNames[static_cast<size_t>(kind)]; }
inline std::optional<LoopKind> find_loop_kind(std::string_view name) {
  for (size_t i = 0; i < std::size(kLoopKindNames); ++i)
    if (kLoopKindNames[i] == name) return static_cast<LoopKind>(i);
  return std::nullopt;
}
inline bool binds_block(LoopKind kind) { return kind >= LoopKind::kBlockX && kind <= LoopKind::kBlockZ; }
inline bool binds_thread(LoopKind kind) { return kind >= LoopKind::kThreadX; }
// 0 .. 2: the axis of the grid or of the block that a bound loop has.
inline size_t bound_axis(LoopKind kind) {
  return static_cast<size_t>(kind) - static_cast<size_t>(binds_thread(kind) ? LoopKind::kThreadX : LoopKind::kBlockX);
}
// The variable runs from 0 to extent - 1.
struct For {
  Symbol var{};
  Dim extent;
  LoopKind kind = LoopKind::kSerial;
  Body body;
};

enum class AxisKind : uint8_t { kSpatial, kReduce, kScan, kGiven };
struct Axis {
  Symbol var{};
  Dim extent;  // may mention preceding axes
  AxisKind kind = AxisKind::kSpatial;
  Dim value;  // over the enclosing loops
};
// The condition left < right.
struct Guard {
  Dim left, right;
  bool operator==(const Guard&) const = default;
};
struct Stage {
  Symbol name{};
  std::vector<Axis> axes;
  std::vector<Guard> where;  // over the loops: a point at which a guard fails is not in the domain
  Body init, body;
  bool async = false;  // copies in the background
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
// A computed index, as in LetIndex.
struct Let {
  Symbol var{};
  Dim extent;
  Expr value;
  Body body;
};
// The storage of a buffer. Shared memory is a block's, of constant size; registers that a block allocates are written
// at the thread's own indices. Stack and register buffers have constant sizes, those on the stack are small; a buffer
// in registers is indexed by constants after unrolled and vectorized loops are expanded.
enum class Scope : uint8_t { kHeap, kStack, kRegisters, kShared };
// By their ids.
inline constexpr std::string_view kScopeNames[] = {"heap", "stack", "registers", "shared"};
inline std::string_view name(Scope scope) { return kScopeNames[static_cast<size_t>(scope)]; }
inline std::optional<Scope> find_scope(std::string_view name) {
  for (size_t i = 0; i < std::size(kScopeNames); ++i)
    if (kScopeNames[i] == name) return static_cast<Scope>(i);
  return std::nullopt;
}
// The buffer exists, with unknown contents, while the body runs.
struct Alloc {
  BufferId buffer{};
  Scope scope = Scope::kHeap;
  Body body;
};
// A call of an external function on whole buffers; the buffers that it writes are the last ones.
struct CallLibrary {
  Symbol symbol{};
  std::vector<BufferId> inputs, outputs;
};
// One index of an axis; with a size, the indices begin .. begin + size - 1, which are an axis of the operand.
struct Part {
  Dim begin;
  int64_t size = 0;
  bool operator==(const Part&) const = default;
};
struct Operand {
  BufferId buffer{};
  std::vector<Part> parts;  // one for each axis of the buffer
};
// An instruction; legal only inside a stage.
struct Intrinsic {
  Symbol name{};
  std::vector<Operand> inputs, outputs;
  bool inexact = false;  // as its declaration: whoever placed it allows it
};
// All threads of a block have executed the preceding statements before any executes a following one.
struct Barrier {};
// Closes a group of asynchronous copies.
struct Commit {};
// All groups but the last ones have arrived.
struct Wait {
  int64_t groups = 0;
};
struct Stmt {
  std::variant<For, Stage, Store, If, Let, Alloc, CallLibrary, Intrinsic, Barrier, Commit, Wait> form;
};

// --- Functions ---

struct BufferAxis {
  Symbol var{};  // the index, which the sizes of later axes may mention
  Dim extent;
};
// Where elements are in memory, for its banks: the index i of the axis `axis` is stored at (i + j // divisor) % size,
// where j is the index of the axis `by` and `size` the size of `axis`. For a size of 2 it is an exclusive or of bits.
// Programs mean the same with it and without.
struct Swizzle {
  size_t axis = 0, by = 0;
  int64_t divisor = 1;
  bool operator==(const Swizzle&) const = default;
};
struct Buffer {
  Symbol name{};
  DType dtype{};
  std::vector<BufferAxis> axes;
  std::vector<Swizzle> swizzles = {};  // at most one of an axis

  size_t rank() const { return axes.size(); }
  void add_outermost_axis(Dim extent) {
    axes.insert(axes.begin(), {.var = Symbol{}, .extent = extent});
    for (Swizzle& swizzle : swizzles) ++swizzle.axis, ++swizzle.by;
  }
};

// A table that sizes and indices apply, as they do a parameter, name(b). It depends on parameters' elements alone: a
// caller computes it once for all calls with equal ones. It describes `count` rows of `width` elements, one row after
// another. (The prelude of Fegade et al., "The CoRa tensor compiler", MLSys 2022, section 4.)
struct Table {
  enum class Kind : uint8_t {
    kOffsets,     // of b in 0 .. count: the first element of row b, or the number of all elements
    kRows,        // of an element: the row that contains it
    kDescending,  // of i in 0 .. count - 1: the row that has the i-th largest width; of equal ones, the first
    kPositions,   // of a row: its index i in that order
    kCounts,      // of t in 0 .. limit - 1: the number of rows that are wider than t, the first ones by kDescending
  };
  Kind kind = Kind::kOffsets;
  Symbol name{};
  Symbol var{};  // the row, in the width
  Dim count, width;
  Dim limit = {};  // a wider row is an error; without a node: there is none, but counts have one
};
// By their ids.
inline constexpr std::string_view kTableKindNames[] = {"offsets", "rows", "descending", "positions", "counts"};
inline std::string_view name(Table::Kind kind) { return kTableKindNames[static_cast<size_t>(kind)]; }

// A condition on the sizes of a function's parameters. The caller checks it; the text form does not have it.
struct SizeRequirement {
  Dim size;             // at least 0
  std::string message;  // the error where it is less
  bool operator==(const SizeRequirement&) const = default;
};

struct Function {
  Symbol name{};
  std::vector<Symbol> dims;  // variables that the parameters' sizes bind
  DimBounds bounds;          // of the dims that have some, as in [n in 1..512]; checked on entry
  std::vector<BufferId> params, results;
  std::vector<Buffer> buffers;
  std::vector<Function> intrinsics;  // instructions that the body may use: of constant sizes, without intrinsics
  double inexact = 0;                // of an instruction: the bound of its relative error; 0: exact
  std::vector<SizeRequirement> required = {};
  std::vector<Table> tables = {};
  Body body;

  const Table* table(Symbol symbol) const {
    for (const Table& table : tables)
      if (table.name == symbol) return &table;
    return nullptr;
  }

  const Function* intrinsic(Symbol symbol) const {
    for (const Function& declared : intrinsics)
      if (declared.name == symbol) return &declared;
    return nullptr;
  }
  const Buffer& buffer(BufferId id) const { return buffers[index(id)]; }
};

// The number of the buffer's leading axes that are one axis of its tensor: those up to the last one whose size depends
// on an index.
size_t packed_axes(const Buffer& buffer);

// Whether the functions are equal up to the ids of their buffers.
bool equal(const Function& a, const Function& b);

// Visits every statement of a body in pre-order, nested ones included.
void for_each_statement(Body& body, FunctionRef<void(Stmt&)> visit);
void for_each_statement(const Body& body, FunctionRef<void(const Stmt&)> visit);
// Visits every body directly inside a statement, in order.
void for_each_body(Stmt& stmt, FunctionRef<void(Body&)> visit);
void for_each_body(const Stmt& stmt, FunctionRef<void(const Body&)> visit);

}  // namespace tenon::compiler::loop
