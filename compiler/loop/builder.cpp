#include "compiler/loop/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "compiler/loop/expr.h"
#include "compiler/loop/tables.h"
#include "compiler/loop/tree.h"
#include "compiler/loop/verify.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

Expr extreme(DType dtype, bool largest) {
  return runtime::with_dtype<kComputedTypes>(dtype, [&]<class T>(T) -> Expr {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>) return literal(dtype, largest ? HUGE_VAL : -HUGE_VAL);
    else return integer_literal(dtype, static_cast<int64_t>(largest ? Limits::max() : Limits::min()));
  });
}

}  // namespace

Expr identity(BinaryOp op, DType dtype) {
  switch (op) {
    case BinaryOp::kAdd: return literal(dtype, 0);
    case BinaryOp::kMultiply: return literal(dtype, 1);
    case BinaryOp::kMin: return extreme(dtype, true);
    case BinaryOp::kMax: return extreme(dtype, false);
    case BinaryOp::kAnd: return integer_literal(DType::kBool, 1);
    case BinaryOp::kOr: return integer_literal(DType::kBool, 0);
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor: return integer_literal(dtype, 0);
    case BinaryOp::kBitAnd:
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
    case BinaryOp::kSubtract:
    case BinaryOp::kDivide:
    case BinaryOp::kRemainder:
    case BinaryOp::kPower:
    case BinaryOp::kEqual:
    case BinaryOp::kLess:
    case BinaryOp::kLessEqual:
    case BinaryOp::kByteDot:
    case BinaryOp::kByteDotSaturating:
    case BinaryOp::kInt16Dot: return nullptr;
  }
  return nullptr;
}

Builder::Builder(TypeContext& context, std::string_view name) : context_(context) {
  function_.name = context.symbol(name);
}

Dim Builder::dim(std::string_view name) {
  const Symbol symbol = context_.symbol(name);
  if (std::ranges::find(function_.dims, symbol) == function_.dims.end()) function_.dims.push_back(symbol);
  return context_.dim(symbol);
}

Ranges Builder::ranges(const Dims& shape) const {
  Ranges result;
  for (Dim extent : shape) result.push_back({{}, extent});
  return result;
}
Ranges Builder::ranges_of(BufferId buffer) const {
  Ranges result;
  for (const BufferAxis& axis : function_.buffer(buffer).axes)
    result.push_back({axis.var == Symbol{} ? std::string() : std::string(context_.name(axis.var)), axis.extent});
  return result;
}

BufferId Builder::add(std::string_view name, const Ranges& axes, DType dtype) {
  Buffer buffer{.name = context_.symbol(name), .dtype = dtype, .axes = {}};
  for (const Range& axis : axes)
    buffer.axes.push_back({axis.name.empty() ? Symbol{} : context_.symbol(axis.name), axis.extent});
  function_.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(function_.buffers.size() - 1);
}
BufferId Builder::param(std::string_view name, const Ranges& axes, DType dtype) {
  return function_.params.emplace_back(add(name, axes, dtype));
}
BufferId Builder::result(std::string_view name, const Ranges& axes, DType dtype) {
  return function_.results.emplace_back(add(name, axes, dtype));
}
BufferId Builder::temporary(std::string_view name, const Ranges& axes, DType dtype) {
  return levels_.back().temporaries.emplace_back(add(name, axes, dtype));
}

Expr Builder::load(BufferId buffer, Dims indices) const { return loop::load(function_, buffer, std::move(indices)); }

Symbol Builder::unused(std::string name) const {
  auto used = [&](Symbol symbol) {
    return std::ranges::find(function_.dims, symbol) != function_.dims.end() ||
           std::ranges::any_of(levels_, [&](const Level& level) { return level.step == symbol; });
  };
  while (used(context_.symbol(name))) name += '_';
  return context_.symbol(name);
}

void Builder::add_loops(Nest& nest, const Ranges& ranges, AxisKind kind, std::string_view base) const {
  std::map<Symbol, Dim> renamed;
  for (const Range& range : ranges) {
    const std::string name = range.name.empty() ? fmt::format("{}{}", base, &range - ranges.data()) : range.name;
    const Symbol var = unused(name);
    const Dim extent = context_.substitute(range.extent, renamed);
    renamed[context_.symbol(name)] = context_.dim(var);
    nest.loops.push_back({.var = var, .extent = extent, .kind = LoopKind::kSerial, .body = {}});
    nest.axes.push_back({.var = var, .extent = extent, .kind = kind, .value = context_.dim(var)});
    nest.point.push_back(context_.dim(var));
  }
}

Symbol Builder::stage_name(std::string_view name) {
  for (std::string unique(name);; unique += '_') {
    const Symbol symbol = context_.symbol(unique);
    if (stages_.insert(symbol).second) return symbol;
  }
}

void Builder::stage(std::string_view name, const Ranges& ranges, const Ranges& reduce,
                    FunctionRef<Assignment(const Dims& point)> assign) {
  Nest nest;
  add_loops(nest, ranges, AxisKind::kSpatial, "i");
  add_loops(nest, reduce, AxisKind::kReduce, "r");
  Assignment assignment = assign(nest.point);
  Stage stage;
  stage.name = stage_name(name);
  stage.axes = step_axes();
  for (Axis& axis : stage.axes) {
    const auto level = std::ranges::find(levels_, axis.var, &Level::step);
    if (std::ranges::find(level->states, assignment.to) != level->states.end()) axis.kind = AxisKind::kScan;
  }
  stage.axes.insert(stage.axes.end(), nest.axes.begin(), nest.axes.end());
  if (assignment.init) stage.init.push_back({Store{assignment.to, assignment.indices, std::move(assignment.init)}});
  stage.body.push_back({Store{assignment.to, std::move(assignment.indices), std::move(assignment.value)}});
  for (ComputedIndex& index : assignment.computed | std::views::reverse) {
    Let let{.var = index.var, .extent = index.extent, .value = std::move(index.value), .body = std::move(stage.body)};
    stage.body.clear();
    stage.body.push_back({std::move(let)});
  }
  levels_.back().body.push_back(loop::nest(std::move(nest.loops), Stmt{std::move(stage)}));
}

std::vector<Axis> Builder::step_axes() const {
  std::vector<Axis> axes;
  for (const Level& level : levels_) {
    if (level.step == Symbol{}) continue;
    axes.push_back(
        {.var = level.step, .extent = level.steps, .kind = AxisKind::kSpatial, .value = context_.dim(level.step)});
  }
  return axes;
}

void Builder::compute(BufferId to, const Value& value) {
  const std::string name(context_.name(function_.buffer(to).name));
  stage(name, ranges_of(to), {}, [&](const Dims& point) { return Assignment{to, point, value(point), nullptr}; });
}

BufferId Builder::compute(std::string_view name, const Ranges& axes, const Value& value) {
  Nest nest;  // for the type of the value
  add_loops(nest, axes, AxisKind::kSpatial, "i");
  const BufferId to = temporary(name, axes, value(nest.point)->dtype);
  compute(to, value);
  return to;
}

void Builder::reduce(BufferId to, const Ranges& over, BinaryOp op, const Value& value, const Value& init) {
  const std::string name(context_.name(function_.buffer(to).name));
  const Ranges ranges = ranges_of(to);
  stage(name, ranges, over, [&](const Dims& point) {
    const Dims indices(point.begin(), point.begin() + static_cast<ptrdiff_t>(ranges.size()));
    return Assignment{to, indices, binary(op, load(to, indices), value(point)),
                      init ? init(indices) : identity(op, function_.buffer(to).dtype)};
  });
}

BufferId Builder::reduce(std::string_view name, const Ranges& axes, const Ranges& over, DType dtype, BinaryOp op,
                         const Value& value, const Value& init) {
  const BufferId to = temporary(name, axes, dtype);
  reduce(to, over, op, value, init);
  return to;
}

Body Builder::close(Level level) {
  Body body = std::move(level.body);
  for (size_t i = level.temporaries.size(); i-- > 0;) {
    Alloc alloc{.buffer = level.temporaries[i], .scope = Scope::kHeap, .body = std::move(body)};
    body.clear();
    body.push_back({std::move(alloc)});
  }
  return body;
}

void Builder::scan(const Range& steps, const std::vector<BufferId>& states, FunctionRef<void(Dim t)> body) {
  const Symbol var = unused(steps.name.empty() ? "t" : steps.name);
  levels_.push_back({.step = var, .steps = steps.extent, .states = states, .temporaries = {}, .body = {}});
  body(context_.dim(var));
  Level level = std::move(levels_.back());
  levels_.pop_back();
  For loop{.var = var, .extent = steps.extent, .kind = LoopKind::kSerial, .body = close(std::move(level))};
  levels_.back().body.push_back({std::move(loop)});
}

Symbol Builder::table(Table::Kind kind, const Range& rows, Dim width, std::string_view base, Dim limit) {
  return table_of(context_, function_, kind, context_.symbol(rows.name), rows.extent, width, base, limit);
}

void Builder::call(std::string_view symbol, std::vector<BufferId> inputs, std::vector<BufferId> outputs) {
  levels_.back().body.push_back(
      {CallLibrary{.symbol = context_.symbol(symbol), .inputs = std::move(inputs), .outputs = std::move(outputs)}});
}

Expected<Function> Builder::build() {
  function_.body = close(std::move(levels_.front()));
  TENON_TRY(verify(context_, function_));
  return std::move(function_);
}

}  // namespace tenon::compiler::loop
