// Makes loop functions: computations on tensors of any size, each a stage in loops of its own, in the order of the
// calls.
//
//   Builder b(context, "dense");
//   const Dim n = b.dim("n"), m = context.dim(64);
//   const BufferId x = b.param("x", {n, m}, DType::kF32), w = b.param("w", {m, m}, DType::kF32);
//   const BufferId y = b.result("y", {n, m}, DType::kF32);
//   const BufferId t = b.reduce("dot", {{"i", n}, {"j", m}}, {{"k", m}}, DType::kF32, BinaryOp::kAdd,
//       [&](const Dims& at) { return binary(BinaryOp::kMultiply, b.load(x, {at[0], at[2]}), b.load(w, {at[2], at[1]}));
//       });
//   b.compute(y, [&](const Dims& at) { return binary(BinaryOp::kMax, b.load(t, at), literal(DType::kF32, 0)); });
//   Expected<Function> function = b.build();
//
// A point is given as the indices of its loops: first those of the axes written to, then those of the reduction. An
// extent may mention the loops before it by their names (ragged: {{"b", n}, {"s", context.apply(lengths,
// {b.index("b")})}}).
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/loop/loop.h"

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
  // An index by the name of its range, for sizes of ranges behind it.
  Dim index(std::string_view name) { return context_.dim(context_.symbol(name)); }
  BufferId param(std::string_view name, const Dims& shape, DType dtype) { return param(name, ranges(shape), dtype); }
  BufferId param(std::string_view name, const Ranges& axes, DType dtype);
  BufferId result(std::string_view name, const Dims& shape, DType dtype) { return result(name, ranges(shape), dtype); }
  BufferId result(std::string_view name, const Ranges& axes, DType dtype);
  // A buffer between stages.
  BufferId temporary(std::string_view name, const Ranges& axes, DType dtype);
  Expr load(BufferId buffer, Dims indices) const;

  using Value = std::function<Expr(const Dims& at)>;
  // As a Let binds it.
  struct ComputedIndex {
    Symbol var{};
    Dim extent;
    Expr value;
  };
  // What one point does: to[at] = value. With a reduction, `init` is what it starts with, and `value` may load to[at].
  struct Assignment {
    BufferId to{};
    Dims at;
    Expr value;
    Expr init = nullptr;
    std::vector<ComputedIndex> computed = {};  // for `at` and `value`, each for those behind it too
  };
  // A stage in its own loops. `point` is given the axes of `ranges` and then of `reduce`.
  void stage(std::string_view name, const Ranges& ranges, const Ranges& reduce,
             const std::function<Assignment(const Dims& at)>& point);

  // buffer[at] = value(at), everywhere. The stage has the buffer's name, a new buffer that of the stage.
  void compute(BufferId to, const Value& value);
  BufferId compute(std::string_view name, const Ranges& axes, const Value& value);
  // buffer[i] = op over r of value(i, r), from `init` (none: what leaves the other operand as it is; of +, *, min,
  // max).
  void reduce(BufferId to, const Ranges& over, BinaryOp op, const Value& value, const Value& init = nullptr);
  BufferId reduce(std::string_view name, const Ranges& axes, const Ranges& over, DType dtype, BinaryOp op,
                  const Value& value, const Value& init = nullptr);

  // Steps t = 0 .. steps - 1 in order; the stages and buffers that `body` makes are those of one step. Stages that
  // write one of the states may read what earlier steps wrote: state[t + 1, ...] = f(state[t, ...]).
  void scan(const Range& steps, const std::vector<BufferId>& states, const std::function<void(Dim t)>& body);

  // An outside function on whole buffers.
  void call(std::string_view symbol, std::vector<BufferId> inputs, std::vector<BufferId> outputs);

  // For what the above does not write: a statement as it is, with buffers that it makes itself, and stages of these
  // names.
  const Function& function() const { return function_; }
  void add(Stmt stmt) { levels_.back().body.push_back(std::move(stmt)); }
  BufferId local(std::string_view name, const Dims& shape, DType dtype) { return add(name, ranges(shape), dtype); }
  Symbol stage_name(std::string_view name);
  // The axes that a stage of such a statement has from the scans that are open; it writes none of their states.
  std::vector<Axis> step_axes() const;

  // The function, verified.
  Expected<Function> build();

 private:
  // Statements and buffers of the function, or of a step of a scan.
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
    Dims at;
  };

  Ranges ranges(const Dims& shape) const;
  Ranges ranges_of(BufferId buffer) const;
  BufferId add(std::string_view name, const Ranges& axes, DType dtype);
  Symbol unused(std::string name) const;
  void add_loops(Nest& nest, const Ranges& ranges, AxisKind kind, std::string_view base) const;
  static Body close(Level level);

  TypeContext& context_;
  Function function_;
  std::vector<Level> levels_{1};  // the function, and scans that are open
  std::set<Symbol> stages_;
};

// What leaves the other operand as it is: 0 for +, 1 for *, the largest value for min, the smallest for max.
Expr identity(BinaryOp op, DType dtype);

}  // namespace tenon::compiler::loop
