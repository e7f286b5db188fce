// Primitives on loops: split, fuse, reorder, remap.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/copies.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/tables.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// Refuses statements that a guard cannot suppress in iterations beyond the loop's size.
Status all_guardable(const TypeContext& context, const Function& function, const Body& body, Symbol var) {
  Status status;
  auto refuse = [&](std::string_view statement) {
    if (status)
      status = error(
          fmt::format("{} inside depends on '{}', whose size the factor may not divide", statement, context.name(var)),
          {}, "use a factor that divides the size");
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

// Whether the axis takes its values from the loop.
bool feeds(const Axis& axis, Symbol var) { return mentions({&axis.value, 1}, var); }

}  // namespace

namespace {

// The quotient of a sum and a size, without the variables whose values within their bounds do not change it: it is
// monotone in a variable with a constant factor, so it is constant if it is the same at both ends. (14*i0 + i1 + 14) //
// 14 is i0 + 1 where i1 is below 14.
Dim without_small_terms(TypeContext& context, const DimProver& prover, Dim quotient, Dim dividend) {
  for (const auto& [name, range] : prover.bounds()) {
    if (!mentions({&quotient, 1}, name) || !range.hi) continue;
    const auto linear = context.linear_in(name, dividend);
    if (!linear || !linear->first.constant()) continue;
    const Dim least = context.substitute(quotient, {{name, context.dim(range.lo.value_or(0))}}),
              most = context.substitute(quotient, {{name, context.dim(*range.hi)}});
    if (prover.equal(least, most) == Answer::kYes) quotient = least;
  }
  return quotient;
}

// The blocks of one size that a loop is split into.
struct Blocks {
  int64_t size = 1;
  Dim begin, count;   // of the first iteration; of blocks
  bool exact = true;  // otherwise the last block exceeds the loop
};

// As many blocks of each size as fit into what the preceding ones leave; the last size covers the remaining iterations.
std::vector<Blocks> blocks_of(TypeContext& context, const DimProver& prover, Dim extent,
                              std::span<const int64_t> sizes) {
  std::vector<Blocks> blocks;
  Dim begin = context.dim(0), left = extent;
  for (size_t i = 0; i < sizes.size() && left.constant() != 0; ++i) {
    const Dim size = context.dim(sizes[i]);
    const bool exact = prover.divides(size, left) == Answer::kYes, last = i + 1 == sizes.size();
    Dim count = last && !exact ? context.ceil_divide(left, sizes[i]) : context.floor_divide(left, size);
    count = without_small_terms(context, prover, count, left);
    if (count.constant() == 0) continue;
    blocks.push_back({sizes[i], begin, count, exact || !last});
    const Dim covered = context.multiply(count, size);
    begin = context.add(begin, covered), left = context.subtract(left, covered);
    if (exact) break;
  }
  if (blocks.empty()) blocks.push_back({sizes.front(), begin, context.dim(0), true});
  return blocks;
}

// Blocks of one size, of which the last one ends with the loop, whatever it has in common with the one before.
std::vector<Blocks> overlapping_blocks(TypeContext& context, const DimProver& prover, Dim extent, int64_t factor) {
  const Dim size = context.dim(factor);
  std::vector<Blocks> blocks{{factor, context.dim(0), context.floor_divide(extent, size), true}};
  if (prover.divides(size, extent) != Answer::kYes)
    blocks.push_back({factor, context.subtract(extent, size), context.dim(1), true});
  return blocks;
}

// Whole blocks of the first size, and those that cover the remaining iterations, rounded up to the last size.
std::vector<Blocks> rounded_blocks(TypeContext& context, const DimProver& prover, Dim extent,
                                   std::span<const int64_t> sizes) {
  const Dim size = context.dim(sizes.front()), count = context.floor_divide(extent, size),
            covered = context.multiply(count, size);
  std::vector<Blocks> blocks;
  if (count.constant() != 0) blocks.push_back({sizes.front(), context.dim(0), count, true});
  const bool exact = prover.divides(context.dim(sizes.back()), extent) == Answer::kYes;
  Dim begin = covered, units = context.ceil_divide(context.subtract(extent, covered), sizes.back());
  for (const int64_t next : sizes.subspan(1)) {
    const Dim in_block = context.dim(next / sizes.back()), blocks_of_size = context.floor_divide(units, in_block);
    if (blocks_of_size.constant() == 0) continue;
    blocks.push_back({next, begin, blocks_of_size, exact});
    begin = context.add(begin, context.multiply(blocks_of_size, context.dim(next)));
    units = context.subtract(units, context.multiply(blocks_of_size, in_block));
  }
  return blocks;
}

// Whether points may be computed twice: the loop contains one stage, which assigns and reads nothing that it writes.
Status computes_again(const TypeContext& context, const For& loop, const Stage& stage) {
  size_t stages = 0;
  for_each_statement(loop.body, [&](const Stmt& stmt) { stages += std::holds_alternative<Stage>(stmt.form); });
  std::set<BufferId> written, read;
  for_each_access(stage, [&](const Access& access) { (access.writes ? written : read).insert(access.buffer); });
  const bool updates = std::ranges::any_of(written, [&](BufferId buffer) { return read.contains(buffer); });
  const bool ordered = std::ranges::any_of(
      stage.axes, [](const Axis& axis) { return axis.kind == AxisKind::kReduce || axis.kind == AxisKind::kScan; });
  if (stages == 1 && !updates && !ordered && !is_instruction(stage)) return {};
  return error(
      fmt::format("points in the loop '{}' cannot be computed twice: '{}' must be its only stage, and read "
                  "nothing that it writes",
                  context.name(loop.var), context.name(stage.name)));
}

}  // namespace

Expected<Function> split(TypeContext& context, Function function, Symbol stage, Symbol loop,
                         std::span<const int64_t> factors, SplitEnd end) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(step, find_loop(context, *path, loop));
  for (size_t i = 0; i < factors.size(); ++i) {
    if (factors[i] < 1) return error(fmt::format("the factor is {}, must be at least 1", factors[i]));
    if (i > 0 && factors[i] > factors[i - 1])
      return error(fmt::format("the factor {} follows {}, must not be larger", factors[i], factors[i - 1]));
  }
  const Path::Step original = path->steps[*step];
  For target = path->loop_at(*step);
  if (target.kind != LoopKind::kSerial)
    return error(fmt::format("the loop '{}' has a loop kind already", context.name(loop)), {},
                 "split the loop before its kind is set");
  const DimProver prover(context, bounds_of(*path, *step));
  if (end == SplitEnd::kOverlap) {
    TENON_TRY(computes_again(context, target, path->stage()));
    if (factors.size() != 1 || prover.less_equal(context.dim(factors[0]), target.extent) != Answer::kYes)
      return error(fmt::format("overlapping blocks must be of one size, at most that of '{}'", context.name(loop)));
  }
  if (end == SplitEnd::kRound) {
    const bool units = factors.size() > 1 &&
                       std::ranges::all_of(factors, [&](int64_t factor) { return factor % factors.back() == 0; });
    if (!units) return error("rounded blocks must be of several sizes, all of them multiples of the last one");
  }
  const std::vector<Blocks> blocks = end == SplitEnd::kOverlap
                                         ? overlapping_blocks(context, prover, target.extent, factors[0])
                                     : end == SplitEnd::kRound ? rounded_blocks(context, prover, target.extent, factors)
                                                               : blocks_of(context, prover, target.extent, factors);
  if (!blocks.back().exact) TENON_TRY(all_guardable(context, function, target.body, loop));
  const Symbol outer = fresh(context, function, fmt::format("{}0", context.name(loop)));
  const Symbol inner = fresh(context, function, fmt::format("{}1", context.name(loop)));
  std::vector<Body> bodies{target.body};
  while (bodies.size() < blocks.size())
    bodies.push_back(copy_of(context, function, target.body, std::to_string(bodies.size())));
  std::vector<Stmt> loops;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Dim size = context.dim(blocks[i].size);
    const Dim value =
        context.add(blocks[i].begin, context.add(context.multiply(context.dim(outer), size), context.dim(inner)));
    if (!value.valid()) return error(fmt::format("the iterations of '{}' cannot be expressed", context.name(loop)));
    for (Stmt& stmt : bodies[i]) {
      substitute(context, function, stmt, {{loop, value}});
      if (blocks[i].exact) continue;
      // Before the other guards, whose sizes may be those of an iteration that exists.
      for_each_stage(stmt, [&](Stage& inside) { inside.where.insert(inside.where.begin(), {value, target.extent}); });
    }
    For within{.var = inner, .extent = size, .kind = LoopKind::kSerial, .body = std::move(bodies[i])};
    For around{.var = outer, .extent = blocks[i].count, .kind = LoopKind::kSerial, .body = {}};
    around.body.push_back({std::move(within)});
    loops.push_back({std::move(around)});
  }
  erase(original);
  original.body->insert(original.body->begin() + static_cast<ptrdiff_t>(original.index),
                        std::make_move_iterator(loops.begin()), std::make_move_iterator(loops.end()));
  return function;
}

namespace {

// Whether tables can have the sizes of rows: over the function's dims and the elements of parameters.
Status is_size_at_entry(const TypeContext& context, const Function& function, Symbol row, Dim count, Dim width) {
  std::set<Symbol> variables(function.dims.begin(), function.dims.end());
  const bool is_count = only_mentions(count, variables);
  variables.insert(row);
  bool applies = false;
  for (const Table& table : function.tables)
    applies |= mentions_function(count, table.name) || mentions_function(width, table.name);
  if (is_count && only_mentions(width, variables) && !applies) return {};
  return error(fmt::format("the sizes {} and {} are not over the function's dims and parameters alone",
                           context.str(count), context.str(width)),
               {}, "their table is computed before the function runs");
}

}  // namespace

Expected<Function> fuse(TypeContext& context, Function function, Symbol stage, Symbol outer, Symbol inner) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(out, find_loop(context, *path, outer));
  TENON_TRY_ASSIGN(in, find_loop(context, *path, inner));
  if (*in != *out + 1 || path->loop_at(*out).body.size() != 1)
    return error(
        fmt::format("the loop '{}' is not the only statement in '{}'", context.name(inner), context.name(outer)));
  For& target = path->loop_at(*out);
  For within = std::move(path->loop_at(*in));
  if (target.kind != LoopKind::kSerial || within.kind != LoopKind::kSerial)
    return error("a loop with a loop kind cannot be fused", {}, "fuse the loops before their kinds are set");
  const Symbol both = fresh(context, function, fmt::format("{}_{}", context.name(outer), context.name(inner)));
  const Dim whole = context.dim(both);
  Body body = std::move(within.body);
  std::map<Symbol, Dim> values{{outer, context.floor_divide(whole, within.extent)},
                               {inner, context.modulo(whole, within.extent)}};
  Dim extent = context.multiply(target.extent, within.extent);
  if (mentions({&within.extent, 1}, outer)) {  // the elements of all rows, one row after another
    const Dim count = target.extent;
    TENON_TRY(is_size_at_entry(context, function, outer, count, within.extent));
    const auto table = [&](Table::Kind kind) {
      return table_of(context, function, kind, outer, count, within.extent, name(kind));
    };
    const Symbol offsets = table(Table::Kind::kOffsets), rows = table(Table::Kind::kRows);
    const Dim row = context.apply(rows, {whole});
    values = {{outer, row}, {inner, context.subtract(whole, context.apply(offsets, {row}))}};
    extent = context.apply(offsets, {count});
  }
  for (Stmt& stmt : body) substitute(context, function, stmt, values);
  target.var = both;
  target.extent = extent;
  target.body = std::move(body);
  return function;
}

Expected<Function> remap(TypeContext& context, Function function, Symbol stage, Symbol loop, std::string_view order) {
  if (order != "descending")
    return error(fmt::format("'{}' is not an order of a loop", order), {}, "the only order is descending");
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(step, find_loop(context, *path, loop));
  For& target = path->loop_at(*step);
  if (!has_independent_iterations(context, function, stage, loop))
    return error(fmt::format("the iterations of '{}' are not independent, so their order matters", context.name(loop)));
  // The iterations of the loops inside are the work of an iteration.
  Dim work = context.dim(1);
  for (size_t inner = *step + 1; inner < path->steps.size(); ++inner) {
    if (!path->is_loop(inner)) continue;
    const Dim size = path->loop_at(inner).extent;
    const bool varies = std::ranges::any_of(all_loops(*path), [&](const For* other) {
      return other->var != loop && mentions({&size, 1}, other->var);
    });
    if (mentions({&size, 1}, loop) && !varies) work = context.multiply(work, size);
  }
  if (!mentions({&work, 1}, loop))
    return error(fmt::format("all iterations of '{}' have equal work: the size of no loop inside depends on it alone",
                             context.name(loop)));
  TENON_TRY(is_size_at_entry(context, function, loop, target.extent, work));
  const Symbol table = table_of(context, function, Table::Kind::kDescending, loop, target.extent, work, order);
  const Symbol position = fresh(context, function, fmt::format("{}_at", context.name(loop)));
  for (Stmt& stmt : target.body)
    substitute(context, function, stmt, {{loop, context.apply(table, {context.dim(position)})}});
  target.var = position;
  return function;
}

Expected<Function> reorder(TypeContext& context, Function function, Symbol stage, std::span<const Symbol> loops) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  std::vector<size_t> steps;
  for (Symbol loop : loops) {
    TENON_TRY_ASSIGN(step, find_loop(context, *path, loop));
    if (std::ranges::find(steps, *step) != steps.end())
      return error(fmt::format("the loop '{}' is named twice", context.name(loop)));
    steps.push_back(*step);
  }
  if (steps.size() < 2) return error("there is nothing to reorder: fewer than two loops");
  std::vector<size_t> sorted = steps;
  std::ranges::sort(sorted);
  const size_t first = sorted.front(), last = sorted.back();
  for (size_t step = first; step <= last; ++step) {
    if (!path->is_loop(step) || (step < last && path->loop_at(step).body.size() != 1))
      return error(fmt::format("the loops from '{}' to '{}' are not perfectly nested",
                               context.name(path->loop_at(first).var), context.name(path->loop_at(last).var)));
  }
  // The new order of all loops from the first to the last named one.
  std::vector<size_t> order;
  for (size_t step = first, next = 0; step <= last; ++step)
    order.push_back(std::ranges::binary_search(sorted, step) ? steps[next++] : step);
  std::vector<For> heads;
  for (size_t step : order) {
    const For& loop = path->loop_at(step);
    for (size_t outside = 0; outside < heads.size(); ++outside)
      if (mentions({&heads[outside].extent, 1}, loop.var))
        return error(fmt::format("the size of '{}' depends on '{}', which must stay outside it",
                                 context.name(heads[outside].var), context.name(loop.var)));
    heads.push_back({.var = loop.var, .extent = loop.extent, .kind = loop.kind, .body = {}});
  }
  Body& innermost = path->loop_at(last).body;
  size_t stages = 0;
  for (Stmt& stmt : innermost) for_each_stage(stmt, [&](Stage&) { ++stages; });
  if (stages != 1 || innermost.size() != 1)
    return error("the loops contain several stages, of which one may read the results of another");
  // Loops of a scan keep their order relative to other loops, except loops of axes along which the scan reads only the
  // index that it writes.
  const Stage& inside = path->stage();
  auto scans = [&](Symbol var) { return feeds(inside, var, AxisKind::kScan); };
  auto independent = [&](Symbol var) {
    bool own_index_only = true;
    std::vector<Access> reads;
    for_each_access(inside, [&](const Access& access) {
      if (!access.writes) reads.push_back(access);
    });
    for (const Axis& axis : inside.axes) {
      if (!feeds(axis, var)) continue;
      if (axis.kind != AxisKind::kSpatial) return false;
      for_each_access(inside, [&](const Access& access) {
        if (!access.writes) return;
        const auto position = distinguishing_index(inside, access, axis.var, [](const Axis&) { return false; });
        for (const Access& read : reads)
          if (read.buffer == access.buffer)
            own_index_only &= position && read.indices[*position] == access.indices[*position];
      });
    }
    return own_index_only;
  };
  for (size_t a = 0; a < order.size(); ++a) {
    for (size_t b = a + 1; b < order.size(); ++b) {
      if (order[a] < order[b]) continue;  // in the original order
      const Symbol new_outer = heads[a].var, new_inner = heads[b].var;
      const bool keeps = (scans(new_outer) && !independent(new_inner)) || (scans(new_inner) && !independent(new_outer));
      if (keeps)
        return error(
            fmt::format("'{}' cannot move out of '{}': the scan reads elements there that earlier points wrote",
                        context.name(new_outer), context.name(new_inner)));
    }
  }
  auto reduces = [&](Symbol var) { return feeds(inside, var, AxisKind::kReduce); };
  // Whether both loops feed the reduction, and one of them other axes as well: then 0 need not come first.
  auto mixes = [&](Symbol a, Symbol b) {
    return reduces(a) && reduces(b) && std::ranges::any_of(inside.axes, [&](const Axis& axis) {
             return axis.kind != AxisKind::kReduce && axis.kind != AxisKind::kGiven &&
                    (feeds(axis, a) || feeds(axis, b));
           });
  };
  for (size_t a = 0; a < order.size(); ++a) {
    for (size_t b = a + 1; b < order.size(); ++b) {
      if (order[a] > order[b] && reduces(heads[a].var) != reduces(heads[b].var) &&
          !visits_points_once(context, function, *path, first))
        return error(fmt::format("'{}' cannot move out of '{}': the points of the stage are computed more than once",
                                 context.name(heads[a].var), context.name(heads[b].var)));
      if (order[a] > order[b] && !inside.init.empty() && mixes(heads[a].var, heads[b].var))
        return error(fmt::format("'{}' cannot move out of '{}': points of the reduction would come before its init",
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
