// Primitives that move what a stage computes to where it is read: inline, compute_at.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/region.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// The one buffer that a stage writes, made inside the function.
Expected<BufferId> own_buffer(const TypeContext& context, Function& function, Stage& stage) {
  std::set<BufferId> written;
  for_each_access(stage, [&](const Access& access) {
    if (access.writes) written.insert(access.buffer);
  });
  if (written.size() != 1)
    return error(fmt::format("the stage '{}' writes {} buffers, not one", context.name(stage.name), written.size()));
  const BufferId buffer = *written.begin();
  if (!find_alloc(function.body, buffer))
    return error(fmt::format("{} is a result of the function", local(context, function, buffer)));
  return buffer;
}

// Whether the buffer is made in a loop.
bool made_in_loop(const Body& body, BufferId buffer, bool inside) {
  return std::ranges::any_of(body, [&](const Stmt& stmt) {
    const auto* alloc = std::get_if<Alloc>(&stmt.form);
    if (alloc && alloc->buffer == buffer) return inside;
    const bool deeper = inside || std::holds_alternative<For>(stmt.form);
    bool found = false;
    for_each_body(stmt, [&](const Body& inner) { found |= made_in_loop(inner, buffer, deeper); });
    return found;
  });
}

// What a stage reads may be read for other points, and at another time, only where it is still there: in no folded
// buffer, and in none of a loop's iteration, unless all that reads `own`, which the stage writes, is in that one too.
Status reads_what_stays(const TypeContext& context, Function& function, const Stage& stage, BufferId own_id) {
  Status status;
  for_each_access(stage, [&](const Access& access) {
    if (access.writes || access.buffer == own_id || !made_in_loop(function.body, access.buffer, false)) return;
    const auto alloc = find_alloc(function.body, access.buffer);
    if (!find_alloc(std::get<Alloc>(alloc->stmt().form).body, own_id))
      status = error(fmt::format("the stage '{}' reads {}, which is made in a loop", context.name(stage.name),
                                 local(context, function, access.buffer)));
  });
  TENON_TRY(status);
  for_each_access(stage, [&](const Access& access) {
    if (access.writes) return;
    for (const Axis& axis : stage.axes) {
      const auto own = own_index(access.indices, axis.var);
      if (own && own->fold != 0)
        status = error(fmt::format("the stage '{}' reads {}, which is folded", context.name(stage.name),
                                   local(context, function, access.buffer)));
    }
  });
  return status;
}

// The axis of each index of the one element that a stage writes.
Expected<std::vector<Symbol>> axes_written(const TypeContext& context, const Function& function, const Stage& stage,
                                           const Store& store) {
  std::vector<Symbol> at;
  for (Dim dim : store.indices) {
    const auto var = dim.variable();
    const bool axis = var && std::ranges::any_of(stage.axes, [&](const Axis& one) { return one.var == *var; });
    if (!axis || std::ranges::find(at, *var) != at.end())
      return error(fmt::format("{} is written at {}, not at the axes of the stage",
                               local(context, function, store.buffer), context.str(store.indices)));
    at.push_back(*var);
  }
  return at;
}

// Everything that reads the buffer can read what the stage reads instead.
Status replaceable(TypeContext& context, Function& function, const Stage& producer, BufferId buffer) {
  std::set<BufferId> inputs;
  for_each_access(producer, [&](const Access& access) {
    if (!access.writes) inputs.insert(access.buffer);
  });
  bool calls = false, rewritten = false, behind = false, other = false, instruction = false;
  for_each_statement(function.body, [&](Stmt& stmt) {
    if (const auto* call = std::get_if<CallLibrary>(&stmt.form)) {
      calls |= std::ranges::find(call->inputs, buffer) != call->inputs.end();
      calls |= std::ranges::find(call->outputs, buffer) != call->outputs.end();
      if (behind)
        for (BufferId output : call->outputs) rewritten |= inputs.contains(output);
    }
    const auto* stage = std::get_if<Stage>(&stmt.form);
    if (!stage) return;
    if (stage == &producer) {
      behind = true;
      return;
    }
    for_each_access(*stage, [&](const Access& access) {
      other |= access.writes && access.buffer == buffer;
      rewritten |= access.writes && behind && inputs.contains(access.buffer);
      instruction |= access.buffer == buffer && !access.sizes.empty();
    });
  });
  const std::string shown = local(context, function, buffer), name(context.name(producer.name));
  if (inputs.contains(buffer)) return error(fmt::format("the stage '{}' reads what it writes", name));
  if (other) return error(fmt::format("{} is written by another stage too", shown));
  if (calls) return error(fmt::format("{} is passed to a library", shown));
  if (instruction) return error(fmt::format("{} is an operand of an instruction", shown));
  if (rewritten) return error(fmt::format("what the stage '{}' reads is written behind it", name));
  return reads_what_stays(context, function, producer, buffer);
}

}  // namespace

Expected<Function> inlined(TypeContext& context, Function function, Symbol stage) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  Stage& producer = path->stage();
  TENON_TRY_ASSIGN(buffer, own_buffer(context, function, producer));
  const auto* store = producer.body.size() == 1 ? std::get_if<Store>(&producer.body[0].form) : nullptr;
  if (!store || !producer.init.empty())
    return error(fmt::format("the stage '{}' is more than one assignment", context.name(stage)));
  for (const Axis& axis : producer.axes) {
    if (axis.kind != AxisKind::kSpatial)
      return error(
          fmt::format("'{}' is no spatial axis of the stage '{}'", context.name(axis.var), context.name(stage)));
  }
  TENON_TRY_ASSIGN(at, axes_written(context, function, producer, *store));
  TENON_TRY(replaceable(context, function, producer, *buffer));
  const Expr value = store->value;
  erase(path->steps[root_of(*path)]);
  auto replace = [&](Expr& expr) {
    expr = rewrite(expr, [&](const ExprNode& node) -> Expr {
      const auto* load = std::get_if<Load>(&node.form);
      if (!load || load->buffer != *buffer) return nullptr;
      std::map<Symbol, Dim> values;
      for (size_t i = 0; i < at->size(); ++i) values[(*at)[i]] = load->indices[i];
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

// The producer's own nest, which stands before the reader's in one body.
struct Pair {
  Path from, to;
  size_t root = 0;    // of the producer's nest
  size_t common = 0;  // of the reader's statement beside it
  size_t at = 0;      // the loop
  BufferId buffer{};
};

Expected<Pair> find_pair(TypeContext& context, Function& function, Symbol stage, Symbol reader, Symbol loop) {
  TENON_TRY_ASSIGN(from, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(to, find_stage(context, function, reader));
  TENON_TRY_ASSIGN(at, find_loop(context, *to, loop));
  TENON_TRY_ASSIGN(buffer, own_buffer(context, function, from->stage()));
  const size_t root = root_of(*from), common = common_steps(*from, *to);
  if (common > root || common > *at || from->steps[common].body != to->steps[common].body ||
      from->steps[root].body != to->steps[common].body || from->steps[root].at >= to->steps[common].at)
    return error(fmt::format("the stages '{}' and '{}' do not stand behind each other in one body", context.name(stage),
                             context.name(reader)));
  return Pair{*from, *to, root, common, *at, *buffer};
}

// Whether the producer may run later, as often as needed.
Status movable(TypeContext& context, Function& function, const Pair& pair) {
  const Stage& producer = pair.from.stage();
  const std::string name(context.name(producer.name));
  for (const Axis& axis : producer.axes) {
    if (axis.kind == AxisKind::kScan)
      return error(
          fmt::format("'{}' is a scan axis of the stage '{}', which is computed whole", context.name(axis.var), name));
    if (axis.kind == AxisKind::kGiven)
      return error(fmt::format("'{}' tells the stage '{}' the loop that a buffer of it is made in",
                               context.name(axis.var), name),
                   {}, "move stages first, say where buffers lie then");
  }
  if (is_instruction(producer)) return error(fmt::format("the stage '{}' is an instruction", name));
  TENON_TRY(reads_what_stays(context, function, producer, pair.buffer));
  const Body& body = *pair.from.steps[pair.root].body;
  const std::set<BufferId> inputs = buffers_read(pair.from.steps[pair.root].stmt());
  for (size_t i = 0; i < body.size(); ++i) {
    if (i == pair.from.steps[pair.root].at) continue;
    for (BufferId written : buffers_written(body[i])) {
      const bool between = i > pair.from.steps[pair.root].at && i <= pair.to.steps[pair.common].at;
      if (inputs.contains(written) && written != pair.buffer && between)
        return error(fmt::format("what the stage '{}' reads, {}, is written behind it", name,
                                 local(context, function, written)));
      if (written == pair.buffer)
        return error(fmt::format("{} is written by another stage too", local(context, function, written)));
    }
  }
  return {};
}

// What one iteration of the loop reads, which is all that reads the buffer.
Expected<Box> box_read(TypeContext& context, Function& function, const Pair& pair, Symbol stage) {
  const std::string shown = local(context, function, pair.buffer);
  For& target = pair.to.loop_at(pair.at);
  const std::set<Symbol> outside = outside_variables(function, pair.to, pair.at);
  auto reads = [&](Body& body) {
    std::vector<Use> uses = uses_of(context, body, pair.buffer);
    std::erase_if(uses, [&](const Use& use) { return use.writes || (use.stage && use.stage->name == stage); });
    return uses;
  };
  const std::vector<Use> inside = reads(target.body);
  if (inside.empty())
    return error(fmt::format("the loop '{}' of '{}' reads nothing of what the stage '{}' computes",
                             context.name(target.var), context.name(pair.to.stage().name), context.name(stage)));
  if (inside.size() != reads(function.body).size())
    return error(fmt::format("{} is read outside the loop '{}' too", shown, context.name(target.var)));
  Box box = box_of(context, function, pair.buffer, inside[0], 0, outside);
  for (const Use& use : inside) {
    if (!use.stage) return error(fmt::format("{} is read by an if, a let or a library", shown));
    box = hull(context, box, box_of(context, function, pair.buffer, use, 0, outside));
  }
  return box;
}

// The producer in new loops, over the box; what of that lies outside of an axis is left out.
Stmt cut_to(TypeContext& context, const Function& function, Stage producer, const Box& box, const DimProver& prover) {
  const Access* write = nullptr;
  std::vector<Access> writes;
  for_each_access(producer, [&](const Access& access) {
    if (access.writes) writes.push_back(access);
  });
  write = &writes.back();
  producer.where.clear();
  std::vector<For> loops;
  std::map<Symbol, Dim> values;
  for (Axis& axis : producer.axes) {
    const Dim extent = context.substitute(axis.extent, values);
    For own{.var = fresh(context, function, fmt::format("{}_{}", context.name(producer.name), context.name(axis.var))),
            .extent = extent,
            .mark = Mark::kSerial,
            .body = {}};
    axis.value = context.dim(own.var);
    const auto index = axis.kind == AxisKind::kSpatial ? own_index(write->indices, axis.var) : std::nullopt;
    if (index && box[index->at]) {
      const Interval& needed = *box[index->at];
      const Dim lo = context.subtract(needed.lo, context.dim(index->offset));
      own.extent = context.add(context.subtract(needed.hi, needed.lo), context.dim(1));
      axis.value = context.add(lo, axis.value);
      // -1 < value, value < extent
      DimBounds bounds = prover.bounds();
      bounds[own.var] = {.lo = 0, .hi = {}};
      if (const auto size = own.extent.constant()) bounds[own.var].hi = *size - 1;
      const DimProver inner(context, bounds);
      if (inner.less_equal(context.dim(0), axis.value) != Answer::kYes)
        producer.where.push_back({context.dim(-1), axis.value});
      if (inner.less(axis.value, extent) != Answer::kYes) producer.where.push_back({axis.value, extent});
    }
    values[axis.var] = axis.value;
    loops.push_back(std::move(own));
  }
  return nest(std::move(loops), Stmt{std::move(producer)});
}

}  // namespace

Expected<Function> compute_at(TypeContext& context, Function function, Symbol stage, Symbol reader, Symbol loop) {
  TENON_TRY_ASSIGN(pair, find_pair(context, function, stage, reader, loop));
  TENON_TRY(movable(context, function, *pair));
  TENON_TRY_ASSIGN(box, box_read(context, function, *pair, stage));
  const DimProver prover(context, bounds_of(pair->to, pair->at + 1));
  Body& body = pair->to.loop_at(pair->at).body;
  body.insert(body.begin(), cut_to(context, function, pair->from.stage(), *box, prover));
  // The old nest stands before the reader's statement, so its place is still right.
  erase(pair->from.steps[pair->root]);
  return function;
}

}  // namespace tenon::compiler::loop
