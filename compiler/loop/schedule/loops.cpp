// Primitives on loops: split, fuse, reorder.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// What may only run for indices of a loop that are in its range.
Status only_guarded_inside(const TypeContext& context, const Function& function, const Body& body, Symbol var) {
  Status status;
  auto refuse = [&](std::string_view what) {
    if (status)
      status =
          error(fmt::format("{} inside depends on '{}', whose size the factor may not divide", what, context.name(var)),
                {}, "take a factor that divides the size");
  };
  for_each_statement(body, [&](const Stmt& stmt) {
    if (const auto* loop = std::get_if<For>(&stmt.form); loop && mentions({&loop->extent, 1}, var))
      refuse("a loop's size");
    if (std::holds_alternative<Let>(stmt.form)) refuse("a let");
    if (std::holds_alternative<If>(stmt.form)) refuse("an if");
    if (std::holds_alternative<CallLibrary>(stmt.form)) refuse("a library call");
    if (const auto* alloc = std::get_if<Alloc>(&stmt.form)) {
      for (const BufferAxis& axis : function.buffer(alloc->buffer).axes)
        if (mentions({&axis.extent, 1}, var)) refuse("a buffer's size");
    }
  });
  return status;
}

// The axes of a stage that a loop's variable gives values to.
bool feeds(const Axis& axis, Symbol var) { return mentions({&axis.value, 1}, var); }

}  // namespace

Expected<Function> split(TypeContext& context, Function function, Symbol stage, Symbol loop, int64_t factor) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(at, find_loop(context, *path, loop));
  if (factor < 1) return error(fmt::format("the factor is {}, not 1 or more", factor));
  For& target = path->loop_at(*at);
  if (target.mark != Mark::kSerial)
    return error(fmt::format("the loop '{}' is marked already", context.name(loop)), {}, "split first, mark then");
  const Dim size = context.dim(factor), extent = target.extent;
  const bool exact = DimProver(context, bounds_of(*path, *at)).divides(size, extent) == Answer::kYes;
  if (!exact) TENON_TRY(only_guarded_inside(context, function, target.body, loop));
  const Symbol outer = fresh(context, function, fmt::format("{}0", context.name(loop)));
  const Symbol inner = fresh(context, function, fmt::format("{}1", context.name(loop)));
  const Dim value = context.add(context.multiply(context.dim(outer), size), context.dim(inner));
  Body body = std::move(target.body);
  for (Stmt& stmt : body) {
    substitute(context, function, stmt, {{loop, value}});
    if (exact) continue;
    for_each_stage(stmt, [&](Stage& inside) { inside.where.push_back({value, extent}); });
  }
  For within{.var = inner, .extent = size, .mark = Mark::kSerial, .body = std::move(body)};
  target.var = outer;
  target.extent = exact ? context.floor_divide(extent, size) : context.ceil_divide(extent, factor);
  target.body.clear();
  target.body.push_back(Stmt{std::move(within)});
  return function;
}

Expected<Function> fuse(TypeContext& context, Function function, Symbol stage, Symbol outer, Symbol inner) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(out, find_loop(context, *path, outer));
  TENON_TRY_ASSIGN(in, find_loop(context, *path, inner));
  if (*in != *out + 1 || path->loop_at(*out).body.size() != 1)
    return error(fmt::format("the loop '{}' is not alone in '{}'", context.name(inner), context.name(outer)));
  For& target = path->loop_at(*out);
  For within = std::move(path->loop_at(*in));
  if (mentions({&within.extent, 1}, outer))
    return error(fmt::format("the size of '{}' depends on '{}'", context.name(inner), context.name(outer)));
  if (target.mark != Mark::kSerial || within.mark != Mark::kSerial)
    return error("a loop that is marked is not fused", {}, "fuse first, mark then");
  const Symbol both = fresh(context, function, fmt::format("{}_{}", context.name(outer), context.name(inner)));
  const Dim whole = context.dim(both);
  Body body = std::move(within.body);
  for (Stmt& stmt : body)
    substitute(context, function, stmt,
               {{outer, context.floor_divide(whole, within.extent)}, {inner, context.modulo(whole, within.extent)}});
  target.var = both;
  target.extent = context.multiply(target.extent, within.extent);
  target.body = std::move(body);
  return function;
}

Expected<Function> reorder(TypeContext& context, Function function, Symbol stage, std::span<const Symbol> loops) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  std::vector<size_t> places;
  for (Symbol loop : loops) {
    TENON_TRY_ASSIGN(at, find_loop(context, *path, loop));
    if (std::ranges::find(places, *at) != places.end())
      return error(fmt::format("the loop '{}' is named twice", context.name(loop)));
    places.push_back(*at);
  }
  if (places.size() < 2) return error("there is nothing to reorder: fewer than two loops");
  std::vector<size_t> sorted = places;
  std::ranges::sort(sorted);
  const size_t first = sorted.front(), last = sorted.back();
  for (size_t step = first; step <= last; ++step) {
    if (!path->is_loop(step) || (step < last && path->loop_at(step).body.size() != 1))
      return error(fmt::format("the loops from '{}' to '{}' hold more than one another",
                               context.name(path->loop_at(first).var), context.name(path->loop_at(last).var)));
  }
  // New order of all loops from the first to the last of them.
  std::vector<size_t> order;
  for (size_t step = first, next = 0; step <= last; ++step)
    order.push_back(std::ranges::binary_search(sorted, step) ? places[next++] : step);
  std::vector<For> heads;
  for (size_t step : order) {
    const For& loop = path->loop_at(step);
    for (size_t outside = 0; outside < heads.size(); ++outside)
      if (mentions({&heads[outside].extent, 1}, loop.var))
        return error(fmt::format("the size of '{}' depends on '{}', which must stay outside it",
                                 context.name(heads[outside].var), context.name(loop.var)));
    heads.push_back({.var = loop.var, .extent = loop.extent, .mark = loop.mark, .body = {}});
  }
  Body& innermost = path->loop_at(last).body;
  size_t stages = 0;
  for (Stmt& stmt : innermost) for_each_stage(stmt, [&](Stage&) { ++stages; });
  if (stages != 1 || innermost.size() != 1)
    return error("several stages stand in the loops, and what one computes the other may read");
  // Loops of a scan keep their place towards others, but those of axes along which the scan reads only its own index.
  const Stage& inside = path->stage();
  auto scans = [&](Symbol var) {
    return std::ranges::any_of(inside.axes,
                               [&](const Axis& axis) { return axis.kind == AxisKind::kScan && feeds(axis, var); });
  };
  auto independent = [&](Symbol var) {
    bool all = true;
    std::vector<Access> reads;
    for_each_access(inside, [&](const Access& access) {
      if (!access.writes) reads.push_back(access);
    });
    for (const Axis& axis : inside.axes) {
      if (!feeds(axis, var)) continue;
      if (axis.kind != AxisKind::kSpatial) return false;
      for_each_access(inside, [&](const Access& access) {
        if (!access.writes) return;
        const auto told = telling_index(inside, access, axis.var, [](const Axis&) { return false; });
        for (const Access& read : reads)
          if (read.buffer == access.buffer) all &= told && read.indices[*told] == access.indices[*told];
      });
    }
    return all;
  };
  for (size_t a = 0; a < order.size(); ++a) {
    for (size_t b = a + 1; b < order.size(); ++b) {
      if (order[a] < order[b]) continue;  // in the order in which they were
      const Symbol now_outside = heads[a].var, now_inside = heads[b].var;
      const bool keeps =
          (scans(now_outside) && !independent(now_inside)) || (scans(now_inside) && !independent(now_outside));
      if (keeps)
        return error(fmt::format("'{}' cannot move out of '{}': the scan reads there what other points wrote before",
                                 context.name(now_outside), context.name(now_inside)));
    }
  }
  auto reduces = [&](Symbol var) {
    return std::ranges::any_of(inside.axes,
                               [&](const Axis& axis) { return axis.kind == AxisKind::kReduce && feeds(axis, var); });
  };
  for (size_t a = 0; a < order.size(); ++a) {
    for (size_t b = a + 1; b < order.size(); ++b) {
      if (order[a] > order[b] && reduces(heads[a].var) != reduces(heads[b].var) &&
          !visits_points_once(context, *path, first))
        return error(fmt::format("'{}' cannot move out of '{}': the points of the stage are computed more than once",
                                 context.name(heads[a].var), context.name(heads[b].var)));
    }
  }
  Body inner = std::move(innermost);
  For bottom = std::move(heads.back());
  heads.pop_back();
  bottom.body = std::move(inner);
  path->steps[first].stmt() = nest(std::move(heads), Stmt{std::move(bottom)});
  return function;
}

}  // namespace tenon::compiler::loop
