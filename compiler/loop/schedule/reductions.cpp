// Primitives on reductions: split_init, rfactor.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "compiler/loop/builder.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/region.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// Whether the loop's variable is in the value of an axis of results.
bool feeds_results(const Stage& stage, Symbol loop) {
  return feeds(stage, loop, AxisKind::kSpatial) || feeds(stage, loop, AxisKind::kScan);
}

// The loops of a reduction's init, and the removed ones, which belong to the reduction alone.
struct InitLoops {
  std::vector<For> loops;
  std::set<Symbol> removed;
};
Expected<InitLoops> init_loops(const TypeContext& context, const Path& path, size_t outermost) {
  InitLoops result;
  const Stage& reduction = path.stage();
  const std::string_view outer = context.name(path.loop_at(outermost).var);
  for (size_t step = 0; step + 1 < path.steps.size(); ++step) {
    if (!path.is_loop(step)) {
      if (step > outermost)
        return error(fmt::format("statements other than loops are between '{}' and the stage '{}'", outer,
                                 context.name(reduction.name)));
      continue;
    }
    const For& candidate = path.loop_at(step);
    const bool reduces = feeds(reduction, candidate.var, AxisKind::kReduce);
    if (step < outermost) {
      if (reduces)
        return error(fmt::format("the loop '{}', outside of '{}', belongs to the reduction",
                                 context.name(candidate.var), outer));
    } else if (feeds_results(reduction, candidate.var)) {
      if (reduces)
        return error(
            fmt::format("the loop '{}' belongs to the reduction and to other axes", context.name(candidate.var)));
      for (Symbol var : result.removed)
        if (mentions({&candidate.extent, 1}, var))
          return error(fmt::format("the size of '{}' depends on the reduction", context.name(candidate.var)));
      result.loops.push_back({.var = candidate.var, .extent = candidate.extent, .kind = candidate.kind, .body = {}});
    } else {
      result.removed.insert(candidate.var);
    }
  }
  // Only the innermost loop may be vectorized.
  for (size_t i = 0; i + 1 < result.loops.size(); ++i) {
    if (result.loops[i].kind == LoopKind::kVectorized) result.loops[i].kind = LoopKind::kSerial;
  }
  return result;
}

}  // namespace

Expected<Function> split_init(TypeContext& context, Function function, Symbol stage, Symbol loop) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(step, find_loop(context, *path, loop));
  Stage& reduction = path->stage();
  if (reduction.init.empty()) return error(fmt::format("the stage '{}' has no init", context.name(stage)));
  if (!visits_points_once(context, function, *path, *step))
    return error(fmt::format("the points of the stage '{}' are computed more than once in the loop '{}'",
                             context.name(stage), context.name(loop)));
  for (const Axis& axis : reduction.axes) {
    if (axis.kind == AxisKind::kReduce && !begins_at_zero(context, axis, all_loops(*path)))
      return error(fmt::format("cannot prove that the stage '{}' begins the reduction '{}' at 0", context.name(stage),
                               context.name(axis.var)));
  }
  TENON_TRY_ASSIGN(loops, init_loops(context, *path, *step));
  Stage init{.name = fresh(context, function, fmt::format("{}_init", context.name(stage))),
             .axes = {},
             .where = {},
             .init = {},
             .body = reduction.init};
  std::set<BufferId> results, needed;
  Dims indices;
  for_each_access(reduction, [&](const Access& access) {
    if (access.writes) results.insert(access.buffer);
  });
  for_each_access(init, [&](const Access& access) {
    if (!access.writes) needed.insert(access.buffer);
    indices.insert(indices.end(), access.indices.begin(), access.indices.end());
  });
  Status status;
  for (Stmt& stmt : path->loop_at(*step).body) {
    for_each_stage(stmt, [&](Stage& other) {
      if (other.name == stage) return;
      for_each_access(other, [&](const Access& access) {
        if (access.writes && (results.contains(access.buffer) || needed.contains(access.buffer)))
          status = error(fmt::format("the stage '{}' writes {} in the loop '{}' too", context.name(other.name),
                                     local(context, function, access.buffer), context.name(loop)));
      });
    });
  }
  TENON_TRY(status);
  auto any = [&](std::span<const Dim> dims) {
    return std::ranges::any_of(loops->removed, [&](Symbol var) { return mentions(dims, var); });
  };
  for (const Guard& guard : reduction.where) {
    const Dim both[] = {guard.left, guard.right};
    const bool spatial =
        std::ranges::any_of(loops->loops, [&](const For& spatial_loop) { return mentions(both, spatial_loop.var); });
    if (any(both) && spatial) return error("a guard of the stage mentions loops of the reduction and others");
    if (!any(both)) init.where.push_back(guard);
  }
  for (const Axis& axis : reduction.axes) {
    if (axis.kind == AxisKind::kReduce) continue;
    if (axis.kind == AxisKind::kGiven && any({&axis.value, 1})) {
      if (mentions(indices, axis.var))
        return error(fmt::format("init depends on '{}', a loop of the reduction", context.name(axis.var)));
      continue;
    }
    init.axes.push_back(axis);
  }
  reduction.init.clear();
  Body& body = *path->steps[*step].body;
  body.insert(body.begin() + static_cast<ptrdiff_t>(path->steps[*step].index),
              nest(std::move(loops->loops), Stmt{std::move(init)}));
  return function;
}

namespace {

// C[...] = C[...] op value, or value op C[...]. An ordered minimum or maximum is a select of what compares as less or
// greater, which keeps C[...] where the value is NaN.
struct Update {
  const Store* store = nullptr;
  BinaryOp op{};
  Expr value;
  bool ordered = false;

  Expr combined(const Expr& before, const Expr& next) const {
    if (!ordered) return binary(op, before, next);
    const Expr replaces =
        op == BinaryOp::kMax ? binary(BinaryOp::kLess, before, next) : binary(BinaryOp::kLess, next, before);
    return select(replaces, next, before);
  }
};

std::optional<Update> ordered_update(const Store& store) {
  const auto* chosen = std::get_if<Select>(&store.value->form);
  const auto* kept = chosen ? std::get_if<Load>(&chosen->otherwise->form) : nullptr;
  if (!kept || kept->buffer != store.buffer || kept->indices != store.indices) return std::nullopt;
  for (const BinaryOp op : {BinaryOp::kMax, BinaryOp::kMin}) {
    Update update{&store, op, chosen->then, true};
    if (equal(store.value, update.combined(chosen->otherwise, chosen->then))) return update;
  }
  return std::nullopt;
}

Expected<Update> update_of(const TypeContext& context, const Stage& stage) {
  const auto* store = stage.body.size() == 1 ? std::get_if<Store>(&stage.body[0].form) : nullptr;
  const auto* both = store ? std::get_if<Binary>(&store->value->form) : nullptr;
  auto accumulates = [&](const Expr& expr) {
    const auto* load = std::get_if<Load>(&expr->form);
    return load && load->buffer == store->buffer && load->indices == store->indices;
  };
  if (both && identity(both->op, store->value->dtype)) {
    for (const auto& [kept, value] : {std::pair{both->left, both->right}, std::pair{both->right, both->left}}) {
      if (accumulates(kept)) return Update{store, both->op, value};
    }
  }
  if (auto ordered = store ? ordered_update(*store) : std::nullopt) return *ordered;
  return error(fmt::format(
      "the stage '{}' is not of the form x[...] = x[...] op y with op one of +, *, min, max, and, or, bit_or, bit_xor",
      context.name(stage.name)));
}

// Splits the reduction axis of the loop into a spatial axis, which is the loop, and the remaining reduction.
Status factor_axis(TypeContext& context, const Function& function, const Path& path, size_t step, Stage& partial) {
  const For& loop = path.loop_at(step);
  const std::string name(context.name(loop.var));
  auto found = partial.axes.end();
  for (auto axis = partial.axes.begin(); axis != partial.axes.end(); ++axis) {
    if (!mentions({&axis->value, 1}, loop.var)) continue;
    if (axis->kind != AxisKind::kReduce || found != partial.axes.end())
      return error(fmt::format("the loop '{}' does not belong to one axis of the reduction alone", name));
    found = axis;
  }
  if (found == partial.axes.end()) return error(fmt::format("the loop '{}' belongs to no axis of the reduction", name));
  const auto linear = context.linear_in(loop.var, found->value);
  const std::vector<const For*> loops = all_loops(path);
  const auto inner_range = linear ? interval_of(context, linear->second, loops) : std::nullopt;
  const auto factor = linear ? linear->first.constant() : std::nullopt;
  if (!factor || *factor < 1 || !inner_range || inner_range->lo != context.dim(0) ||
      mentions({&inner_range->hi, 1}, loop.var))
    return error(fmt::format("cannot prove that '{}' is a sum of its loops", context.name(found->var)));
  const std::set<Symbol> dims(function.dims.begin(), function.dims.end());
  for (Dim size : {loop.extent, inner_range->hi}) {
    bool constant = true;
    for_each_variable(size, [&](Symbol var) { constant &= dims.contains(var); });
    if (!constant)
      return error(fmt::format("the size {} of a loop of the reduction depends on other loops", context.str(size)));
  }
  // Every iteration of the loop must have at least one term.
  std::map<Symbol, Dim> first;
  for (const For* other : loops)
    if (other->var != loop.var && feeds(partial, other->var, AxisKind::kReduce)) first[other->var] = context.dim(0);
  for (const Guard& guard : partial.where) {
    const Dim both[] = {guard.left, guard.right};
    if (mentions(both, loop.var) &&
        !always_below(context, context.substitute(guard.left, first), context.substitute(guard.right, first), {&loop}))
      return error(fmt::format("an iteration of '{}' may have no terms", name));
  }
  const Symbol chunk = fresh(context, function, name);
  const Axis axis{.var = chunk, .extent = loop.extent, .kind = AxisKind::kSpatial, .value = context.dim(loop.var)};
  const Dim inner = context.dim(found->var);
  substitute_axes(context, partial,
                  {{found->var, context.add(context.multiply(linear->first, context.dim(chunk)), inner)}});
  for (Axis& other : partial.axes) {
    if (mentions({&other.extent, 1}, found->var))
      return error(fmt::format("the size of '{}' depends on '{}'", context.name(other.var), context.name(found->var)));
  }
  if (inner_range->hi == context.dim(0)) {
    substitute_axes(context, partial, {{found->var, context.dim(0)}});
    partial.axes.erase(found);
  } else {
    // The last chunk may be shorter: its size, not only a guard, must express this, since points may be recomputed from
    // their axes.
    const Dim size = context.add(inner_range->hi, context.dim(1));
    const Dim begin = context.multiply(linear->first, context.dim(chunk)),
              remaining = context.subtract(found->extent, begin);
    const For chunks{.var = chunk, .extent = loop.extent, .kind = {}, .body = {}};
    const bool whole = always_below(context, size, context.add(remaining, context.dim(1)), {&chunks});
    found->value = linear->second;
    found->extent = whole ? size : context.minimum({size, remaining});
  }
  partial.axes.insert(partial.axes.begin(), axis);
  return {};
}

}  // namespace

Expected<Function> rfactor(TypeContext& context, Function function, Symbol stage, Symbol loop) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(step, find_loop(context, *path, loop));
  Stage& partial = path->stage();
  TENON_TRY_ASSIGN(update, update_of(context, partial));
  if (partial.init.empty())
    return error(fmt::format("the stage '{}' has no init", context.name(stage)), {}, "rfactor before split_init");
  const BufferId to = update->store->buffer;
  TENON_TRY(writes_exclusively(context, function, *path, std::nullopt, to));
  if (!visits_points_once(context, function, *path, 0))
    return error(fmt::format("the points of the stage '{}' are computed more than once", context.name(stage)));

  // The stage that combines the partial results of the loop's iterations.
  Stage sum = partial;
  const DType dtype = function.buffer(to).dtype;
  const Symbol name = fresh(context, function, fmt::format("{}_rf", context.name(stage)));
  const For chunks =
      For{.var = path->loop_at(*step).var, .extent = path->loop_at(*step).extent, .kind = {}, .body = {}};
  std::erase_if(sum.axes, [](const Axis& axis) { return axis.kind != AxisKind::kSpatial; });
  sum.where.clear();
  std::vector<For> loops;
  std::map<Symbol, Dim> values;
  for (Axis& axis : sum.axes) {
    const Symbol var = fresh(context, function, fmt::format("{}_{}", context.name(stage), context.name(axis.var)));
    loops.push_back(
        {.var = var, .extent = context.substitute(axis.extent, values), .kind = LoopKind::kSerial, .body = {}});
    values[axis.var] = axis.value = context.dim(var);
  }
  const Symbol chunk = fresh(context, function, fmt::format("{}_{}", context.name(stage), context.name(chunks.var)));
  loops.push_back({.var = chunk, .extent = chunks.extent, .kind = LoopKind::kSerial, .body = {}});
  sum.axes.push_back({.var = chunk, .extent = chunks.extent, .kind = AxisKind::kReduce, .value = context.dim(chunk)});

  // The partial results.
  Buffer parts = function.buffer(to);
  parts.name = name;
  parts.add_outermost_axis(chunks.extent);
  function.buffers.push_back(std::move(parts));
  const auto buffer = static_cast<BufferId>(function.buffers.size() - 1);
  const Dims indices = update->store->indices;
  auto with = [&](Symbol first) {
    Dims dims{context.dim(first)};
    dims.insert(dims.end(), indices.begin(), indices.end());
    return dims;
  };
  const Update combine = *update;
  const Expr whole = combine.combined(load(function, to, indices), load(function, buffer, with(chunk)));
  sum.body.clear();
  sum.body.push_back({Store{to, indices, whole}});
  // `value` is stored in the stage's body, so that factor_axis() replaces the axis in it too.
  partial.body.clear(), partial.init.clear();
  partial.body.push_back({Store{to, indices, combine.value}});
  TENON_TRY(factor_axis(context, function, *path, *step, partial));
  const Expr added = std::get<Store>(partial.body[0].form).value;
  const Dims element = with(partial.axes.front().var);
  const bool reduces =
      std::ranges::any_of(partial.axes, [](const Axis& axis) { return axis.kind == AxisKind::kReduce; });
  partial.body.clear();
  partial.body.push_back(
      {Store{buffer, element, reduces ? combine.combined(load(function, buffer, element), added) : added}});
  if (reduces) partial.init.push_back({Store{buffer, element, identity(combine.op, dtype)}});
  partial.name = name;

  Alloc alloc{.buffer = buffer, .scope = Scope::kHeap, .body = {}};
  const Path::Step root = path->steps[outermost_step(*path)];
  alloc.body.push_back(std::move(root.stmt()));
  alloc.body.push_back(nest(std::move(loops), Stmt{std::move(sum)}));
  // The statements after it too, so that the combining stage and its readers stay in one body.
  const auto after = root.body->begin() + static_cast<ptrdiff_t>(root.index) + 1;
  std::move(after, root.body->end(), std::back_inserter(alloc.body));
  root.body->erase(after, root.body->end());
  root.stmt() = Stmt{std::move(alloc)};
  return function;
}

}  // namespace tenon::compiler::loop
