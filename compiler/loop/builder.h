// A builder of loop functions: each call appends a computation on tensors of any size as a stage in its own loops.
//
//   Builder b(context, "dense");
//   const Dim n = b.dim("n"), m = context.dim(64);
//   const BufferId x = b.param("x", {n, m}, DType::kF32), w = b.param("w", {m, m}, DType::kF32);
//   const BufferId y = b.result("y", {n, m}, DType::kF32);
//   const BufferId t = b.reduce("dot", {{"i", n}, {"j", m}}, {{"k", m}}, DType::kF32, BinaryOp::kAdd,
//       [&](const Dims& i) { return binary(BinaryOp::kMultiply, b.load(x, {i[0], i[2]}), b.load(w, {i[2], i[1]})); });
//   b.compute(y, [&](const Dims& i) { return binary(BinaryOp::kMax, b.load(t, i), literal(DType::kF32, 0)); });
//   Expected<Function> function = b.build();
//
// A point is a list of loop indices: first those of the axes of the written buffer, then those of the reduction. An
// extent may mention preceding loops by their names (ragged: {{"b", n}, {"s", context.apply(lengths,
// {b.index("b")})}}).
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/loop/loop.h"
#include "support/function_ref.h"

namespace tenon::compiler::loop {

struct Range {
  std::string name;  // empty: i0, i1, ... by position, r0, r1, ... of a reduction
  Dim extent;
};
using Ranges = std::vector<Range>;

class Builder {
 public:
  Builder(TypeContext& context, std::string_view name);

  // A variable that the parameters' sizes bind.
  Dim dim(std::string_view name);
  // An index by the name of its range, for the sizes of later ranges.
  Dim index(std::string_view name) { return context_.dim(context_.symbol(name)); }
  BufferId param(std::string_view name, const Dims& shape, DType dtype) { return param(name, ranges(shape), dtype); }
  BufferId param(std::string_view name, const Ranges& axes, DType dtype);
  BufferId result(std::string_view name, const Dims& shape, DType dtype) { return result(name, ranges(shape), dtype); }
  BufferId result(std::string_view name, const Ranges& axes, DType dtype);
  // A buffer between stages.
  BufferId temporary(std::string_view name, const Ranges& axes, DType dtype);
  Expr load(BufferId buffer, Dims indices) const;

  using Value = std::function<Expr(const Dims& point)>;
  // An index that a Let binds.
  struct ComputedIndex {
    Symbol var{};
    Dim extent;
    Expr value;
  };
  // The assignment of one point: to[indices] = value. A reduction starts with `init`; its `value` may load to[indices].
  struct Assignment {
    BufferId to{};
    Dims indices;
    Expr value;
    Expr init = nullptr;
    std::vector<ComputedIndex> computed = {};  // visible in `indices`, `value` and later elements
  };
  // A stage in its own loops. `assign` receives the axes of `ranges`, then those of `reduce`.
  void stage(std::string_view name, const Ranges& ranges, const Ranges& reduce,
             FunctionRef<Assignment(const Dims& point)> assign);

  // buffer[point] = value(point) for all points. The stage has the buffer's name, a new buffer the stage's.
  void compute(BufferId to, const Value& value);
  BufferId compute(std::string_view name, const Ranges& axes, const Value& value);
  // buffer[i] = op over r of value(i, r), starting with `init`; without `init`, with the identity of op (+, *, min,
  // max).
  void reduce(BufferId to, const Ranges& over, BinaryOp op, const Value& value, const Value& init = nullptr);
  BufferId reduce(std::string_view name, const Ranges& axes, const Ranges& over, DType dtype, BinaryOp op,
                  const Value& value, const Value& init = nullptr);

  // Steps t = 0 .. steps - 1 in order; the stages and buffers that `body` makes belong to one step. Stages that write
  // one of the states may read the results of earlier steps: state[t + 1, ...] = f(state[t, ...]).
  void scan(const Range& steps, const std::vector<BufferId>& states, FunctionRef<void(Dim t)> body);

  // The table of these rows, whose sizes `width` has by the index of their range (Table in loop.h); named by `base`.
  Symbol table(Table::Kind kind, const Range& rows, Dim width, std::string_view base, Dim limit = {});

  // Calls an external function on whole buffers.
  void call(std::string_view symbol, std::vector<BufferId> inputs, std::vector<BufferId> outputs);

  // Statements that the methods above do not cover: appends a statement unchanged; `local` declares the buffers that
  // the statement allocates, `stage_name` returns unique names for its stages.
  const Function& function() const { return function_; }
  void add(Stmt stmt) { levels_.back().body.push_back(std::move(stmt)); }
  BufferId local(std::string_view name, const Dims& shape, DType dtype) { return add(name, ranges(shape), dtype); }
  Symbol stage_name(std::string_view name);
  // The axes that the open scans give a stage of such a statement; the stage must not write the scans' states.
  std::vector<Axis> step_axes() const;

  // The function, verified.
  Expected<Function> build();

 private:
  // The statements and buffers of the function, or of one step of a scan.
  struct Level {
    Symbol step{};  // of a scan
    Dim steps;
    std::vector<BufferId> states;
    std::vector<BufferId> temporaries;
    Body body;
  };
  struct Nest {
    std::vector<For> loops;
    std::vector<Axis> axes;
    Dims point;
  };

  Ranges ranges(const Dims& shape) const;
  Ranges ranges_of(BufferId buffer) const;
  BufferId add(std::string_view name, const Ranges& axes, DType dtype);
  Symbol unused(std::string name) const;
  void add_loops(Nest& nest, const Ranges& ranges, AxisKind kind, std::string_view base) const;
  static Body close(Level level);

  TypeContext& context_;
  Function function_;
  std::vector<Level> levels_{1};  // the function and the open scans
  std::set<Symbol> stages_;
};

// The identity of an operation: 0 for +, 1 for *, the largest value for min, the smallest for max. Null if none exists.
Expr identity(BinaryOp op, DType dtype);

}  // namespace tenon::compiler::loop
