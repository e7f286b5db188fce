// The primitive skew: a loop that runs along the diagonals of two loops.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/access.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

constexpr int64_t kMaxDiagonals = 1024;

// The kinds of the stage's axes that take their values from the loop.
bool feeds_axis(const Stage& stage, Symbol var, AxisKind kind) {
  return std::ranges::any_of(stage.axes, [&](const Axis& axis) {
    return axis.kind == kind && mentions({&axis.value, 1}, var);
  });
}

}  // namespace

Expected<Function> skew(TypeContext& context, Function function, Symbol stage, Symbol outer, Symbol inner) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(out, find_loop(context, *path, outer));
  TENON_TRY_ASSIGN(in, find_loop(context, *path, inner));
  const std::string names[] = {std::string(context.name(outer)), std::string(context.name(inner))};
  if (*in != *out + 1 || path->loop_at(*out).body.size() != 1)
    return error(fmt::format("the loop '{}' is not the only statement in '{}'", names[1], names[0]));
  For& diagonal = path->loop_at(*out);
  const For& within = path->loop_at(*in);
  for (const For* loop : {&std::as_const(diagonal), &within}) {
    if (loop->kind != LoopKind::kSerial && loop->kind != LoopKind::kUnrolled)
      return error(fmt::format("the loop '{}' is {}", context.name(loop->var), name(loop->kind)), {},
                   "skew serial or unrolled loops");
  }
  if (mentions({&within.extent, 1}, outer))
    return error(fmt::format("the size of '{}' depends on '{}'", names[1], names[0]));
  size_t stages = 0, others = 0;
  for_each_statement(within.body, [&](const Stmt& stmt) {
    stages += std::holds_alternative<Stage>(stmt.form);
    const auto* loop = std::get_if<For>(&stmt.form);
    others += std::holds_alternative<Alloc>(stmt.form) || std::holds_alternative<Let>(stmt.form) ||
              std::holds_alternative<If>(stmt.form) || std::holds_alternative<CallLibrary>(stmt.form) ||
              (loop && mentions({&loop->extent, 1}, outer));
  });
  Stage& inside = path->stage();
  if (stages != 1 || others > 0 || is_instruction(inside))
    return error(fmt::format("the loop '{}' contains more than loops around one stage", names[1]));
  // The points of one element keep their order unless both loops traverse its terms.
  const bool scans = feeds_axis(inside, outer, AxisKind::kScan) || feeds_axis(inside, inner, AxisKind::kScan);
  const bool reduce = feeds_axis(inside, outer, AxisKind::kReduce) && feeds_axis(inside, inner, AxisKind::kReduce);
  if (scans || reduce)
    return error(fmt::format("'{}' and '{}' are both loops of a reduction, or one is of a scan", names[0], names[1]));
  const Dim extent = diagonal.extent, diagonals = context.subtract(context.add(extent, within.extent), context.dim(1));
  if (diagonal.kind == LoopKind::kUnrolled && diagonals.constant().value_or(kMaxDiagonals + 1) > kMaxDiagonals)
    return error(
        fmt::format("'{}' has {} diagonals, at most {} are unrolled", names[0], context.str(diagonals), kMaxDiagonals));
  // Without iterations of either loop there are none of the other: the guards refuse all.
  diagonal.var = fresh(context, function, fmt::format("{}_{}", names[0], names[1]));
  diagonal.extent = context.maximum({diagonals, context.dim(0)});
  const Dim value = context.subtract(context.dim(diagonal.var), context.dim(inner));
  for (Stmt& stmt : diagonal.body) {
    substitute(context, function, stmt, {{outer, value}});
    for_each_stage(stmt, [&](Stage& target) {
      target.where.push_back({context.dim(-1), value});
      target.where.push_back({value, extent});
    });
  }
  return function;
}

}  // namespace tenon::compiler::loop
