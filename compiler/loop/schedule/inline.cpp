// Primitives that move the computation of a stage to its readers: inline, compute_at.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/copies.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/region.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// Whether the buffer is allocated in a loop.
bool allocated_in_loop(const Body& body, BufferId buffer, bool inside) {
  return std::ranges::any_of(body, [&](const Stmt& stmt) {
    const auto* alloc = std::get_if<Alloc>(&stmt.form);
    if (alloc && alloc->buffer == buffer) return inside;
    const bool deeper = inside || std::holds_alternative<For>(stmt.form);
    bool found = false;
    for_each_body(stmt, [&](const Body& inner) { found |= allocated_in_loop(inner, buffer, deeper); });
    return found;
  });
}

// Whether the stage's inputs may be read for other points and at another time: they must not be folded, nor live only
// in a loop's iteration, unless all readers of `result`, which the stage writes, are in the same iteration.
Status inputs_stay_available(const TypeContext& context, Function& function, const Stage& stage, BufferId result) {
  Status status;
  for_each_access(stage, [&](const Access& access) {
    if (access.writes || access.buffer == result || !allocated_in_loop(function.body, access.buffer, false)) return;
    const auto alloc = find_alloc(function.body, access.buffer);
    if (!find_alloc(std::get<Alloc>(alloc->stmt().form).body, result))
      status = error(fmt::format("the stage '{}' reads {}, which is allocated in a loop", context.name(stage.name),
                                 local(context, function, access.buffer)));
  });
  TENON_TRY(status);
  // A buffer is folded if a stage stores at remainders of an axis. Loads at remainders select elements of any buffer.
  std::set<BufferId> folded;
  for_each_statement(function.body, [&](const Stmt& stmt) {
    const auto* writer = std::get_if<Stage>(&stmt.form);
    if (!writer) return;
    for_each_access(*writer, [&](const Access& access) {
      for (const Axis& axis : writer->axes) {
        const auto index = access.writes ? offset_index(access.indices, axis.var) : std::nullopt;
        if (index && index->fold != 0) folded.insert(access.buffer);
      }
    });
  });
  for_each_access(stage, [&](const Access& access) {
    if (!access.writes && folded.contains(access.buffer))
      status = error(fmt::format("the stage '{}' reads {}, which is folded", context.name(stage.name),
                                 local(context, function, access.buffer)));
  });
  return status;
}

// The axis that is each index of the stage's store.
Expected<std::vector<Symbol>> axes_written(const TypeContext& context, const Function& function, const Stage& stage,
                                           const Store& store) {
  std::vector<Symbol> axes;
  for (Dim dim : store.indices) {
    const auto var = dim.variable();
    const bool is_axis = var && std::ranges::any_of(stage.axes, [&](const Axis& axis) { return axis.var == *var; });
    if (!is_axis || std::ranges::find(axes, *var) != axes.end())
      return error(fmt::format("{} is written at {}, not at the axes of the stage",
                               local(context, function, store.buffer), context.str(store.indices)));
    axes.push_back(*var);
  }
  return axes;
}

// Whether every reader of the buffer can read the stage's inputs instead.
Status replaceable(TypeContext& context, Function& function, const Stage& producer, BufferId buffer) {
  std::set<BufferId> inputs;
  for_each_access(producer, [&](const Access& access) {
    if (!access.writes) inputs.insert(access.buffer);
  });
  bool calls = false, overwritten = false, after = false, other = false, instruction = false;
  for_each_statement(function.body, [&](Stmt& stmt) {
    if (const auto* call = std::get_if<CallLibrary>(&stmt.form)) {
      calls |= std::ranges::find(call->inputs, buffer) != call->inputs.end();
      calls |= std::ranges::find(call->outputs, buffer) != call->outputs.end();
      if (after)
        for (BufferId output : call->outputs) overwritten |= inputs.contains(output);
    }
    const auto* stage = std::get_if<Stage>(&stmt.form);
    if (!stage) return;
    if (stage == &producer) {
      after = true;
      return;
    }
    for_each_access(*stage, [&](const Access& access) {
      other |= access.writes && access.buffer == buffer;
      overwritten |= access.writes && after && inputs.contains(access.buffer);
      instruction |= access.buffer == buffer && !access.sizes.empty();
    });
  });
  const std::string shown = local(context, function, buffer), name(context.name(producer.name));
  if (inputs.contains(buffer)) return error(fmt::format("the stage '{}' reads the buffer that it writes", name));
  if (other) return error(fmt::format("{} is written by another stage too", shown));
  if (calls) return error(fmt::format("{} is passed to a library", shown));
  if (instruction) return error(fmt::format("{} is an operand of an instruction", shown));
  if (overwritten) return error(fmt::format("an input of the stage '{}' is written after it", name));
  return inputs_stay_available(context, function, producer, buffer);
}

}  // namespace

Expected<Function> inlined(TypeContext& context, Function function, Symbol stage) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  Stage& producer = path->stage();
  TENON_TRY_ASSIGN(buffer, only_result(context, function, producer));
  const auto* store = producer.body.size() == 1 ? std::get_if<Store>(&producer.body[0].form) : nullptr;
  if (!store || !producer.init.empty())
    return error(fmt::format("the stage '{}' is more than one assignment", context.name(stage)));
  for (const Axis& axis : producer.axes) {
    if (axis.kind != AxisKind::kSpatial)
      return error(
          fmt::format("'{}' is not a spatial axis of the stage '{}'", context.name(axis.var), context.name(stage)));
  }
  TENON_TRY_ASSIGN(axes, axes_written(context, function, producer, *store));
  TENON_TRY(replaceable(context, function, producer, *buffer));
  const Expr value = store->value;
  erase(path->steps[root_of(*path)]);
  auto replace = [&](Expr& expr) {
    expr = rewrite(expr, [&](const ExprNode& node) -> Expr {
      const auto* load = std::get_if<Load>(&node.form);
      if (!load || load->buffer != *buffer) return nullptr;
      std::map<Symbol, Dim> values;
      for (size_t i = 0; i < axes->size(); ++i) values[(*axes)[i]] = load->indices[i];
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

// A producer and its reader, whose nests are in one body, the producer's first.
struct ProducerAndReader {
  Path from, to;
  size_t root = 0;    // the step of the producer's nest
  size_t common = 0;  // the step of the reader's statement in the same body
  size_t loop = 0;    // the step of the reader's loop
  BufferId buffer{};
};

Expected<ProducerAndReader> find_pair(TypeContext& context, Function& function, Symbol stage, Symbol reader,
                                      Symbol loop) {
  TENON_TRY_ASSIGN(from, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(to, find_stage(context, function, reader));
  TENON_TRY_ASSIGN(step, find_loop(context, *to, loop));
  TENON_TRY_ASSIGN(buffer, only_result(context, function, from->stage()));
  const size_t root = root_of(*from), common = common_steps(*from, *to);
  if (common > root || common > *step || from->steps[common].body != to->steps[common].body ||
      from->steps[root].body != to->steps[common].body || from->steps[root].index >= to->steps[common].index)
    return error(fmt::format("the stages '{}' and '{}' do not follow each other in one body", context.name(stage),
                             context.name(reader)));
  return ProducerAndReader{*from, *to, root, common, *step, *buffer};
}

// Whether the producer may run later and repeatedly.
Status movable(TypeContext& context, Function& function, const ProducerAndReader& pair) {
  const Stage& producer = pair.from.stage();
  const std::string name(context.name(producer.name));
  for (const Axis& axis : producer.axes) {
    if (axis.kind == AxisKind::kScan)
      return error(fmt::format("'{}' is a scan axis of the stage '{}', which must be computed as a whole",
                               context.name(axis.var), name));
    if (axis.kind == AxisKind::kGiven)
      return error(fmt::format("'{}' is the loop of a buffer that the stage '{}' uses", context.name(axis.var), name),
                   {}, "move stages before their buffers are placed in loops");
  }
  if (is_instruction(producer)) return error(fmt::format("the stage '{}' is an instruction", name));
  TENON_TRY(inputs_stay_available(context, function, producer, pair.buffer));
  const Body& body = *pair.from.steps[pair.root].body;
  const std::set<BufferId> inputs = buffers_read(pair.from.steps[pair.root].stmt());
  for (size_t i = 0; i < body.size(); ++i) {
    if (i == pair.from.steps[pair.root].index) continue;
    for (BufferId written : buffers_written(body[i])) {
      const bool between = i > pair.from.steps[pair.root].index && i <= pair.to.steps[pair.common].index;
      if (inputs.contains(written) && written != pair.buffer && between)
        return error(fmt::format("the input {1} of the stage '{0}' is written after it", name,
                                 local(context, function, written)));
    }
  }
  bool others = false;
  for_each_statement(function.body, [&](const Stmt& stmt) {
    const auto* other = std::get_if<Stage>(&stmt.form);
    if (other != &producer && (other || std::holds_alternative<CallLibrary>(stmt.form)))
      others |= buffers_written(stmt).contains(pair.buffer);
  });
  if (others) return error(fmt::format("{} is written by another stage too", local(context, function, pair.buffer)));
  return {};
}

// The box that one iteration of the loop reads; no other statements may read the buffer.
Expected<Box> box_read(TypeContext& context, Function& function, const ProducerAndReader& pair, Symbol stage) {
  const std::string shown = local(context, function, pair.buffer);
  For& target = pair.to.loop_at(pair.loop);
  const std::set<Symbol> outside = outside_variables(function, pair.to, pair.loop);
  auto reads = [&](Body& body) {
    std::vector<Use> uses = uses_of(context, body, pair.buffer);
    std::erase_if(uses, [&](const Use& use) { return use.writes || (use.stage && use.stage->name == stage); });
    return uses;
  };
  const std::vector<Use> inside = reads(target.body);
  if (inside.empty())
    return error(fmt::format("the loop '{}' of '{}' reads no result of the stage '{}'", context.name(target.var),
                             context.name(pair.to.stage().name), context.name(stage)));
  if (inside.size() != reads(function.body).size())
    return error(fmt::format("{} is read outside the loop '{}' too", shown, context.name(target.var)));
  Box box = box_of(context, function, pair.buffer, inside[0], 0, outside);
  for (const Use& use : inside) {
    if (!use.stage) return error(fmt::format("{} is read by an if, a let or a library", shown));
    box = hull(context, box, box_of(context, function, pair.buffer, use, 0, outside));
  }
  return box;
}

// The producer in new loops over the box, inside the loops `around`, with guards where the box exceeds an axis. The
// first `shared` of these loops were around the producer before: an axis of theirs keeps its value.
Stmt cut_to(TypeContext& context, const Function& function, Stage producer, const Box& box,
            const std::vector<const For*>& around, size_t shared) {
  const Access* write = nullptr;
  std::vector<Access> writes;
  for_each_access(producer, [&](const Access& access) {
    if (access.writes) writes.push_back(access);
  });
  write = &writes.back();
  std::vector<For> loops;
  std::map<Symbol, Dim> values;
  const auto is_shared = [&](Dim value) {
    bool any = false, all = true;
    for_each_variable(value, [&](Symbol var) {
      any = true;
      all &= std::any_of(around.begin(), around.begin() + static_cast<ptrdiff_t>(shared),
                         [&](const For* loop) { return loop->var == var; });
    });
    return any && all;
  };
  // The guards of axes that keep their values stay; the others are those of the loops that the stage leaves.
  std::set<Symbol> kept(function.dims.begin(), function.dims.end());
  for (const Axis& axis : producer.axes)
    if (is_shared(axis.value)) for_each_variable(axis.value, [&](Symbol var) { kept.insert(var); });
  std::erase_if(producer.where, [&](const Guard& guard) {
    return !only_mentions(guard.left, kept) || !only_mentions(guard.right, kept);
  });
  for (Axis& axis : producer.axes) {
    const Dim extent = context.substitute(axis.extent, values);
    if (is_shared(axis.value)) {
      values[axis.var] = axis.value;
      continue;
    }
    For loop{.var = fresh(context, function, fmt::format("{}_{}", context.name(producer.name), context.name(axis.var))),
             .extent = extent,
             .kind = LoopKind::kSerial,
             .body = {}};
    axis.value = context.dim(loop.var);
    const auto index = axis.kind == AxisKind::kSpatial ? offset_index(write->indices, axis.var) : std::nullopt;
    const DimProver prover(context);
    const Dim offset = context.dim(index ? index->offset : 0);
    // A box that contains the whole axis, as of windows that leave it, needs no guards.
    const bool whole =
        index && box[index->position] && prover.less_equal(box[index->position]->lo, offset) == Answer::kYes &&
        prover.less(context.add(extent, offset), context.add(box[index->position]->hi, context.dim(2))) == Answer::kYes;
    if (index && box[index->position] && !whole) {
      const Interval& needed = *box[index->position];
      const Dim lo = context.subtract(needed.lo, offset);
      loop.extent = context.add(context.subtract(needed.hi, needed.lo), context.dim(1));
      axis.value = context.add(lo, axis.value);
      std::vector<const For*> within = around;
      within.push_back(&loop);
      for (const Guard& guard : {Guard{context.dim(-1), axis.value}, Guard{axis.value, extent}})
        if (!always_below(context, guard.left, guard.right, within)) producer.where.push_back(guard);
    }
    values[axis.var] = axis.value;
    loops.push_back(std::move(loop));
  }
  return nest(std::move(loops), Stmt{std::move(producer)});
}

}  // namespace

Expected<Function> compute_at(TypeContext& context, Function function, Symbol stage, Symbol reader, Symbol loop) {
  TENON_TRY_ASSIGN(pair, find_pair(context, function, stage, reader, loop));
  TENON_TRY(movable(context, function, *pair));
  TENON_TRY_ASSIGN(box, box_read(context, function, *pair, stage));
  std::vector<const For*> around;
  size_t shared = 0;
  for (size_t step = 0; step <= pair->loop; ++step) {
    if (!pair->to.is_loop(step)) continue;
    around.push_back(&pair->to.loop_at(step));
    if (step < pair->common) shared = around.size();
  }
  Stmt nest = cut_to(context, function, pair->from.stage(), *box, around, shared);
  Body& body = pair->to.loop_at(pair->loop).body;
  body.insert(body.begin(), std::move(nest));
  // The old nest precedes the reader's statement, so its index is still valid.
  erase(pair->from.steps[pair->root]);
  return function;
}

}  // namespace tenon::compiler::loop
