// Primitives on stages: inlining, computing at a loop of the reader, splitting off the start of a reduction.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/try.h"
#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/tree.h"

namespace tenon::compiler::loop {
namespace {

std::string local(const Context& context, const Function& function, BufferId id) {
  return fmt::format("%{}", context.name(function.buffer(id).name));
}

// The one buffer that a stage writes, made inside the function.
Expected<BufferId> own_buffer(const Context& context, Function& function, Stage& stage) {
  std::set<BufferId> written;
  for_each_store(stage, [&](Store& store) { written.insert(store.buffer); });
  if (written.size() != 1)
    return error(fmt::format("the stage '{}' writes {} buffers, not one", context.name(stage.name), written.size()));
  const BufferId buffer = *written.begin();
  if (!find_alloc(function.body, buffer))
    return error(fmt::format("{} is a result of the function", local(context, function, buffer)));
  return buffer;
}

// The outermost statement that holds this stage alone.
size_t root_of(const Path& path) {
  size_t root = path.steps.size() - 1;
  while (root > 0 && path.is_loop(root - 1) && path.loop_at(root - 1).body.size() == 1) --root;
  return root;
}

void erase(const Path::Step& step) { step.body->erase(step.body->begin() + static_cast<ptrdiff_t>(step.at)); }

// The last step that both paths have in common; nothing where they part at the function's body.
size_t common_steps(const Path& a, const Path& b) {
  size_t common = 0;
  while (common < a.steps.size() && common < b.steps.size() && a.steps[common].body == b.steps[common].body &&
         a.steps[common].at == b.steps[common].at)
    ++common;
  return common;
}

void remove_alloc(Function& function, BufferId buffer) {
  const auto place = find_alloc(function.body, buffer);
  Body inner = std::move(std::get<Alloc>(place->stmt().form).body);
  Body& body = *place->body;
  body.erase(body.begin() + static_cast<ptrdiff_t>(place->at));
  body.insert(body.begin() + static_cast<ptrdiff_t>(place->at), std::make_move_iterator(inner.begin()),
              std::make_move_iterator(inner.end()));
}

}  // namespace

Expected<Function> inlined(Context& context, Function function, Symbol stage) {
  TENON_TAKE(path, find_stage(context, function, stage));
  Stage& producer = path->stage();
  TENON_TAKE(buffer, own_buffer(context, function, producer));
  const auto* store = producer.body.size() == 1 ? std::get_if<Store>(&producer.body[0].form) : nullptr;
  if (!store || !producer.init.empty())
    return error(fmt::format("the stage '{}' is more than one assignment", context.name(stage)));
  for (const Axis& axis : producer.axes) {
    if (axis.kind != AxisKind::kSpatial)
      return error(
          fmt::format("'{}' is no spatial axis of the stage '{}'", context.name(axis.var), context.name(stage)));
  }
  std::vector<Symbol> at;  // the axis of each index
  for (Dim dim : store->indices) {
    const auto var = dim.variable();
    const bool axis = var && std::ranges::any_of(producer.axes, [&](const Axis& one) { return one.var == *var; });
    if (!axis || std::ranges::find(at, *var) != at.end())
      return error(fmt::format("{} is written at {}, not at the axes of the stage", local(context, function, *buffer),
                               context.str(store->indices)));
    at.push_back(*var);
  }
  bool calls = false, rewritten = false, itself = false, behind = false, other = false;
  std::set<BufferId> inputs;
  for_each_access(producer, [&](const Access& load) {
    if (load.writes) return;
    inputs.insert(load.buffer);
    itself |= load.buffer == *buffer;
  });
  for_each_statement(function.body, [&](Stmt& stmt) {
    if (auto* call = std::get_if<CallLibrary>(&stmt.form)) {
      calls |= std::ranges::find(call->inputs, *buffer) != call->inputs.end();
      calls |= std::ranges::find(call->outputs, *buffer) != call->outputs.end();
      if (behind)
        for (BufferId output : call->outputs) rewritten |= inputs.contains(output);
    }
    if (auto* one = std::get_if<Stage>(&stmt.form)) {
      if (one == &producer) {
        behind = true;
        return;
      }
      for_each_store(*one, [&](Store& to) {
        other |= to.buffer == *buffer;
        rewritten |= behind && inputs.contains(to.buffer);
      });
    }
  });
  if (itself) return error(fmt::format("the stage '{}' reads what it writes", context.name(stage)));
  if (other) return error(fmt::format("{} is written by another stage too", local(context, function, *buffer)));
  if (calls) return error(fmt::format("{} is passed to a library", local(context, function, *buffer)));
  if (rewritten) return error(fmt::format("what the stage '{}' reads is written behind it", context.name(stage)));
  const Expr value = store->value;
  erase(path->steps[root_of(*path)]);
  auto replace = [&](Expr& expr) {
    expr = rewrite(expr, [&](const ExprNode& node) -> Expr {
      const auto* load = std::get_if<Load>(&node.form);
      if (!load || load->buffer != *buffer) return nullptr;
      std::map<Symbol, Dim> values;
      for (size_t i = 0; i < at.size(); ++i) values[at[i]] = load->indices[i];
      return substitute(context, value, values);
    });
  };
  for_each_statement(function.body, [&](Stmt& stmt) {
    if (auto* to = std::get_if<Store>(&stmt.form)) replace(to->value);
    if (auto* branch = std::get_if<If>(&stmt.form)) replace(branch->condition);
    if (auto* let = std::get_if<Let>(&stmt.form)) replace(let->value);
  });
  remove_alloc(function, *buffer);
  return function;
}

namespace {

struct Interval {
  Dim lo, hi;  // both inside
};

// The values that an index takes while the loops inside run; nothing where that is not seen.
std::optional<Interval> interval_of(Context& context, Dim dim, const std::vector<const For*>& inner) {
  Interval result{dim, dim};
  for (size_t i = inner.size(); i-- > 0;) {  // the innermost first: its size may depend on the others
    const Dim last = context.subtract(inner[i]->extent, context.dim(1));
    for (Dim* end : {&result.lo, &result.hi}) {
      if (!mentions({end, 1}, inner[i]->var)) continue;
      const auto linear = context.linear_in(inner[i]->var, *end);
      const auto factor = linear ? linear->first.constant() : std::nullopt;
      if (!factor) return std::nullopt;
      const bool at_last = (*factor > 0) == (end == &result.hi);
      *end = at_last ? context.add(context.multiply(linear->first, last), linear->second) : linear->second;
    }
  }
  return result;
}

}  // namespace

Expected<Function> compute_at(Context& context, Function function, Symbol stage, Symbol reader, Symbol loop) {
  TENON_TAKE(from, find_stage(context, function, stage));
  TENON_TAKE(to, find_stage(context, function, reader));
  TENON_TAKE(at, find_loop(context, *to, loop));
  Stage producer = from->stage();
  TENON_TAKE(buffer, own_buffer(context, function, from->stage()));
  const size_t root = root_of(*from), common = common_steps(*from, *to);
  // Both begin in one body, the producer first.
  if (common > root || common > *at || from->steps[common].body != to->steps[common].body ||
      from->steps[root].body != to->steps[common].body || from->steps[root].at >= to->steps[common].at)
    return error(fmt::format("the stages '{}' and '{}' do not stand behind each other in one body", context.name(stage),
                             context.name(reader)));
  for (const Axis& axis : producer.axes) {
    if (axis.kind == AxisKind::kScan)
      return error(fmt::format("'{}' is a scan axis of the stage '{}', which is computed whole", context.name(axis.var),
                               context.name(stage)));
  }
  std::set<BufferId> inputs = buffers_read(from->steps[root].stmt());
  Body& body = *from->steps[root].body;
  For& target = to->loop_at(*at);
  for (size_t i = from->steps[root].at + 1; i < body.size(); ++i) {
    for (BufferId written : buffers_written(body[i])) {
      if (inputs.contains(written) && i <= to->steps[common].at)
        return error(fmt::format("what the stage '{}' reads, {}, is written behind it", context.name(stage),
                                 local(context, function, written)));
      if (written == *buffer)
        return error(fmt::format("{} is written by another stage too", local(context, function, *buffer)));
    }
  }
  // Every read of the buffer is in the loop; the indices that one iteration reads.
  const Buffer& written = function.buffer(*buffer);
  std::vector<std::optional<Interval>> region(written.rank());
  std::vector<bool> whole(written.rank(), false);
  size_t inside = 0, all = 0;
  Status status;
  for_each_statement(function.body, [&](Stmt& stmt) {
    if (auto* call = std::get_if<CallLibrary>(&stmt.form)) {
      if (std::ranges::find(call->inputs, *buffer) != call->inputs.end()) ++all;
    }
    if (auto* one = std::get_if<Stage>(&stmt.form); one && one->name != stage) {
      for_each_access(*one, [&](const Access& load) { all += !load.writes && load.buffer == *buffer; });
    }
    for (const auto* condition : {std::get_if<If>(&stmt.form) ? &std::get<If>(stmt.form).condition : nullptr,
                                  std::get_if<Let>(&stmt.form) ? &std::get<Let>(stmt.form).value : nullptr}) {
      if (!condition) continue;
      for_each_node(*condition, [&](const ExprNode& node) {
        const auto* load = std::get_if<Load>(&node.form);
        if (load && load->buffer == *buffer && status)
          status = error(fmt::format("{} is read by an if or a let", local(context, function, *buffer)));
      });
    }
  });
  TENON_TRY(status);
  std::vector<const For*> inner;
  const std::function<void(Stmt&)> gather = [&](Stmt& stmt) {
    if (auto* deeper = std::get_if<For>(&stmt.form)) inner.push_back(deeper);
    if (auto* one = std::get_if<Stage>(&stmt.form)) {
      for_each_access(*one, [&](const Access& load) {
        if (load.writes || load.buffer != *buffer) return;
        ++inside;
        const Dims indices = over_loops(context, *one, load.indices);
        for (size_t i = 0; i < indices.size(); ++i) {
          // A variable that is no loop's is a computed index: it may be anything.
          bool known = true;
          for_each_variable(indices[i], [&](Symbol var) {
            known &= to->loop(var) || std::ranges::find(function.dims, var) != function.dims.end() ||
                     std::ranges::any_of(inner, [&](const For* deeper) { return deeper->var == var; });
          });
          const auto one_region = known ? interval_of(context, indices[i], inner) : std::nullopt;
          if (!one_region) {
            whole[i] = true;
          } else if (!region[i]) {
            region[i] = one_region;
          } else {
            region[i]->lo = context.minimum({region[i]->lo, one_region->lo});
            region[i]->hi = context.maximum({region[i]->hi, one_region->hi});
          }
        }
      });
    }
    for_each_body(stmt, [&](Body& deeper) { std::ranges::for_each(deeper, gather); });
    if (std::holds_alternative<For>(stmt.form)) inner.pop_back();
  };
  std::ranges::for_each(target.body, gather);
  if (inside == 0)
    return error(fmt::format("the loop '{}' of '{}' reads nothing of what the stage '{}' computes", context.name(loop),
                             context.name(reader), context.name(stage)));
  if (inside != all)
    return error(
        fmt::format("{} is read outside the loop '{}' too", local(context, function, *buffer), context.name(loop)));

  // The new loops, over the region; what of it lies outside the buffer is left out.
  const DimProver prover(context, bounds_of(*to, *at + 1));
  const Store* store = nullptr;
  for_each_store(producer, [&](Store& one) { store = &one; });
  producer.where.clear();
  std::vector<For> loops;
  std::map<Symbol, Dim> values;
  for (Axis& axis : producer.axes) {
    const Dim extent = context.substitute(axis.extent, values);
    For own{.var = fresh(context, function, fmt::format("{}_{}", context.name(stage), context.name(axis.var))),
            .extent = extent,
            .mark = Mark::kSerial,
            .body = {}};
    axis.value = context.dim(own.var);
    if (axis.kind == AxisKind::kSpatial) {
      const auto index = own_index(store->indices, axis.var);
      if (!whole[index->at]) {
        const Interval& needed = *region[index->at];
        const Dim lo = context.subtract(needed.lo, context.dim(index->offset));
        own.extent = context.add(context.subtract(needed.hi, needed.lo), context.dim(1));
        axis.value = context.add(lo, axis.value);
        // -1 < value, value < extent
        DimBounds bounds = prover.bounds();
        bounds[own.var] = {.lo = 0, .hi = {}};
        if (const auto size = own.extent.constant()) bounds[own.var].hi = *size - 1;
        const DimProver inner_prover(context, bounds);
        if (inner_prover.less_equal(context.dim(0), axis.value) != Answer::kYes)
          producer.where.push_back({context.dim(-1), axis.value});
        if (inner_prover.less(axis.value, extent) != Answer::kYes) producer.where.push_back({axis.value, extent});
      }
    }
    values[axis.var] = axis.value;
    loops.push_back(std::move(own));
  }
  target.body.insert(target.body.begin(), nest(std::move(loops), Stmt{std::move(producer)}));
  // The old nest stands before the reader's statement, so its place is still right.
  erase(from->steps[root]);
  return function;
}

Expected<Function> split_init(Context& context, Function function, Symbol stage, Symbol loop) {
  TENON_TAKE(path, find_stage(context, function, stage));
  TENON_TAKE(at, find_loop(context, *path, loop));
  Stage& reduction = path->stage();
  if (reduction.init.empty()) return error(fmt::format("the stage '{}' has no init", context.name(stage)));
  auto feeds = [&](Symbol var, bool reduce) {
    return std::ranges::any_of(reduction.axes, [&](const Axis& axis) {
      return (axis.kind == AxisKind::kReduce) == reduce && mentions({&axis.value, 1}, var);
    });
  };
  if (!visits_points_once(context, *path, *at))
    return error(fmt::format("the points of the stage '{}' are computed more than once in the loop '{}'",
                             context.name(stage), context.name(loop)));
  std::set<Symbol> gone;
  std::vector<For> loops;
  for (size_t step = 0; step + 1 < path->steps.size(); ++step) {
    if (!path->is_loop(step)) {
      if (step > *at)
        return error(fmt::format("more than loops stand between '{}' and the stage '{}'", context.name(loop),
                                 context.name(stage)));
      continue;
    }
    const For& one = path->loop_at(step);
    const bool reduces = feeds(one.var, true);
    if (step < *at) {
      if (reduces)
        return error(fmt::format("the loop '{}', outside of '{}', belongs to the reduction", context.name(one.var),
                                 context.name(loop)));
    } else if (feeds(one.var, false)) {
      if (reduces)
        return error(fmt::format("the loop '{}' belongs to the reduction and to other axes", context.name(one.var)));
      for (Symbol var : gone)
        if (mentions({&one.extent, 1}, var))
          return error(fmt::format("the size of '{}' depends on the reduction", context.name(one.var)));
      loops.push_back({.var = one.var, .extent = one.extent, .mark = Mark::kSerial, .body = {}});
    } else {
      gone.insert(one.var);
    }
  }
  std::set<BufferId> own;
  for_each_store(reduction, [&](Store& store) { own.insert(store.buffer); });
  std::set<BufferId> needed;
  Stage init{.name = fresh(context, function, fmt::format("{}_init", context.name(stage))),
             .axes = {},
             .where = {},
             .init = {},
             .body = reduction.init};
  for_each_access(init, [&](const Access& load) {
    if (!load.writes) needed.insert(load.buffer);
  });
  Status status;
  for (Stmt& stmt : path->loop_at(*at).body) {
    for_each_stage(stmt, [&](Stage& other) {
      if (other.name == stage) return;
      for_each_store(other, [&](Store& store) {
        if (own.contains(store.buffer) || needed.contains(store.buffer))
          status = error(fmt::format("the stage '{}' writes {} in the loop '{}' too", context.name(other.name),
                                     local(context, function, store.buffer), context.name(loop)));
      });
    });
  }
  TENON_TRY(status);
  for (const Guard& guard : reduction.where) {
    const Dim both[] = {guard.left, guard.right};
    const bool mixed = std::ranges::any_of(gone, [&](Symbol var) { return mentions(both, var); });
    const bool spatial = std::ranges::any_of(loops, [&](const For& one) { return mentions(both, one.var); });
    if (mixed && spatial) return error("a guard of the stage mentions loops of the reduction and others");
    if (!mixed) init.where.push_back(guard);
  }
  for (const Axis& axis : reduction.axes) {
    if (axis.kind != AxisKind::kReduce) init.axes.push_back(axis);
  }
  reduction.init.clear();
  Body& body = *path->steps[*at].body;
  body.insert(body.begin() + static_cast<ptrdiff_t>(path->steps[*at].at),
              nest(std::move(loops), Stmt{std::move(init)}));
  return function;
}

}  // namespace tenon::compiler::loop
