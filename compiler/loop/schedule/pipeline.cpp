// The primitive pipeline: a stage runs one iteration ahead of the stages after it in a loop.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/schedule/pipelining.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/storage.h"
#include "support/try.h"

namespace tenon::compiler::loop {

Body& inner_body(For& loop) {
  Body* body = &loop.body;
  while (body->size() == 1 && std::holds_alternative<Alloc>(body->front().form))
    body = &std::get<Alloc>(body->front().form).body;
  return *body;
}

Status only_stages_depend(const TypeContext& context, const Function& function, const For& loop) {
  Status status;
  auto refuse = [&](std::string_view statement) {
    status = error(fmt::format("{} inside depends on '{}'", statement, context.name(loop.var)));
  };
  for_each_statement(loop.body, [&](const Stmt& stmt) {
    if (const auto* inner = std::get_if<For>(&stmt.form); inner && mentions({&inner->extent, 1}, loop.var))
      refuse("a loop's size");
    if (const auto* alloc = std::get_if<Alloc>(&stmt.form)) {
      for (const BufferAxis& axis : function.buffer(alloc->buffer).axes)
        if (mentions({&axis.extent, 1}, loop.var)) refuse("a buffer's size");
    }
    if (std::holds_alternative<CallLibrary>(stmt.form)) refuse("a library call");
  });
  // Conditions inside a stage are over its axes.
  const std::function<void(const Stmt&)> visit = [&](const Stmt& stmt) {
    if (std::holds_alternative<Stage>(stmt.form)) return;
    if (std::holds_alternative<If>(stmt.form)) refuse("an if");
    if (std::holds_alternative<Let>(stmt.form)) refuse("a let");
    for_each_body(stmt, [&](const Body& body) { std::ranges::for_each(body, visit); });
  };
  std::ranges::for_each(loop.body, visit);
  return status;
}

Status may_run_ahead(TypeContext& context, Function& function, const For& loop, Body& body, size_t position) {
  Status status;
  Stmt& first = body[position];
  const std::set<BufferId> reads = buffers_read(first), writes = buffers_written(first);
  for (size_t i = 0; i < body.size(); ++i) {
    if (i == position) continue;
    for (BufferId buffer : buffers_written(body[i])) {
      if (reads.contains(buffer) || writes.contains(buffer))
        return error(fmt::format("{} is also written after it in the loop '{}'", local(context, function, buffer),
                                 context.name(loop.var)));
    }
  }
  std::set<BufferId> own;  // of an iteration: those of different iterations are disjoint
  for_each_statement(loop.body, [&](const Stmt& stmt) {
    if (const auto* alloc = std::get_if<Alloc>(&stmt.form)) own.insert(alloc->buffer);
  });
  for_each_stage(first, [&](Stage& stage) {
    for (const Axis& axis : stage.axes) {
      if (axis.kind == AxisKind::kReduce && mentions({&axis.value, 1}, loop.var))
        status = error(fmt::format("'{}' is a reduction axis of the stage '{}'", context.name(axis.var),
                                   context.name(stage.name)));
    }
    for_each_access(stage, [&](const Access& access) {
      // A parameter has all its elements all the time, whatever its indices.
      if (own.contains(access.buffer) || std::ranges::find(function.params, access.buffer) != function.params.end())
        return;
      for (const Axis& axis : stage.axes) {
        const auto index = offset_index(access.indices, axis.var);
        if (index && index->fold != 0)
          status = error(fmt::format("{} is folded", local(context, function, access.buffer)));
      }
    });
  });
  return status;
}

Expected<Function> pipeline(TypeContext& context, Function function, Symbol stage, Symbol loop) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(step, find_loop(context, *path, loop));
  For& target = path->loop_at(*step);
  const std::string name(context.name(loop));
  if (target.kind != LoopKind::kSerial) return error(fmt::format("the loop '{}' has a loop kind already", name));
  Body& body = inner_body(target);
  const bool first = std::ranges::any_of(
      path->steps, [&](const Path::Step& outer) { return outer.body == &body && outer.index == 0; });
  if (!first || body.size() < 2)
    return error(fmt::format("the stage '{}' is not the first of several statements in the loop '{}'",
                             context.name(stage), name));
  TENON_TRY(only_stages_depend(context, function, target));
  TENON_TRY(may_run_ahead(context, function, target, body, 0));

  // Buffers of an iteration that the first statement writes are doubled and allocated outside of the loop.
  std::set<BufferId> allocated, doubled;
  for (Body* outer = &target.body; outer != &body; outer = &std::get<Alloc>(outer->front().form).body)
    allocated.insert(std::get<Alloc>(outer->front().form).buffer);
  for (BufferId buffer : buffers_written(body.front()))
    if (allocated.contains(buffer)) doubled.insert(buffer);
  const std::vector<const For*> loops = loops_up_to(*path, *step);
  for (BufferId buffer : doubled) {
    function.buffers[index(buffer)].add_outermost_axis(context.dim(2));
  }
  const Dim iteration = context.dim(loop), extent = target.extent;
  for (size_t i = 0; i < body.size(); ++i) {
    for_each_stage(body[i], [&](Stage& user) {
      for (BufferId buffer : doubled) {
        bool uses = false;
        for_each_access(user, [&](const Access& access) { uses |= access.buffer == buffer; });
        if (!uses) continue;
        const Symbol axis = axis_of_loop(context, function, user, loops, i == 0 ? AxisKind::kScan : AxisKind::kGiven);
        add_index(user, buffer, context.modulo(context.dim(axis), context.dim(2)));
      }
    });
  }
  for (size_t i = 0; i < body.size(); ++i) {
    if (i > 0) substitute(context, function, body[i], {{loop, context.subtract(iteration, context.dim(1))}});
    for_each_stage(body[i], [&](Stage& inside) {
      inside.where.push_back(i == 0 ? Guard{iteration, extent} : Guard{context.dim(0), iteration});
    });
  }
  target.extent = context.add(extent, context.dim(1));
  if (doubled.empty()) return function;
  // The doubled buffers are allocated around the loop, the others in their original order inside.
  std::vector<Alloc> kept, moved;
  for (Body* outer = &target.body; outer != &body; outer = &std::get<Alloc>(outer->front().form).body) {
    const auto& alloc = std::get<Alloc>(outer->front().form);
    (doubled.contains(alloc.buffer) ? moved : kept)
        .push_back({.buffer = alloc.buffer, .scope = alloc.scope, .body = {}});
  }
  Body inside = std::move(body);
  auto wrap = [](std::vector<Alloc>& allocs, Body inner) {
    for (size_t i = allocs.size(); i-- > 0;) {
      allocs[i].body = std::move(inner);
      inner.clear();
      inner.push_back({std::move(allocs[i])});
    }
    return inner;
  };
  target.body = wrap(kept, std::move(inside));
  Stmt& original = path->steps[*step].stmt();
  Body whole;
  whole.push_back(std::move(original));
  original = std::move(wrap(moved, std::move(whole)).front());
  return function;
}

}  // namespace tenon::compiler::loop
