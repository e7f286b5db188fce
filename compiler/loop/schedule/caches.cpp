// Primitives that insert a copy between a stage and a buffer that it reads or writes: cache_read, cache_write.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/copies.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/storage.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// Wraps the statement, and those after it if `following` is set, in an Alloc of the buffer.
void wrap_in_alloc(const Path::Step& step, BufferId buffer, bool following) {
  Alloc alloc{.buffer = buffer, .scope = Scope::kHeap, .body = {}};
  const auto first = step.body->begin() + static_cast<ptrdiff_t>(step.index),
             last = following ? step.body->end() : first + 1;
  std::move(first, last, std::back_inserter(alloc.body));
  step.body->erase(first, last);
  step.body->insert(step.body->begin() + static_cast<ptrdiff_t>(step.index), Stmt{std::move(alloc)});
}

// The body that receives the copy: the loop's, or that of an Alloc around the whole nest; with `following`, around the
// statements after it too, which stay in one body with it, so that compute_at can still move the nest into them.
Body& body_for_copy(const Path& path, std::optional<size_t> loop, BufferId cache, bool following) {
  const size_t step = loop.value_or(outermost_step(path));
  wrap_in_alloc(path.steps[step], cache, following && !loop);
  Body& alloc_body = std::get<Alloc>(path.steps[step].stmt().form).body;
  return loop ? std::get<For>(alloc_body.front().form).body : alloc_body;
}

// The box of the buffer that the stage uses in an iteration of the loop; without a loop, the whole buffer.
Box box_of_stage(TypeContext& context, Function& function, const Path& path, std::optional<size_t> loop,
                 BufferId buffer) {
  Box box(function.buffer(buffer).rank());
  if (!loop) return box;
  bool first = true;
  const std::set<Symbol> outside = outside_variables(function, path, *loop);
  for (const Use& use : uses_of(context, path.loop_at(*loop).body, buffer)) {
    if (use.stage != &path.stage()) continue;
    const Box used = box_of(context, function, buffer, use, 0, outside);
    box = first ? used : hull(context, box, used);
    first = false;
  }
  return box;
}

Expected<std::optional<size_t>> find_placement_loop(const TypeContext& context, const Path& path,
                                                    std::optional<CachePlacement> placement) {
  if (!placement) return std::nullopt;
  TENON_TRY_ASSIGN(step, find_loop(context, path, placement->loop));
  return *step;
}

// The loops up to the one in which the copy is placed.
std::vector<const For*> around(const Path& path, std::optional<size_t> loop) {
  std::vector<const For*> loops;
  for (size_t step = 0; loop && step <= *loop; ++step)
    if (path.is_loop(step)) loops.push_back(&path.loop_at(step));
  return loops;
}

Expected<Function> placed(TypeContext& context, Function function, BufferId cache, Symbol stage,
                          std::optional<CachePlacement> placement) {
  if (!placement) return function;
  return store_in_loop(context, std::move(function), cache, stage, placement->loop, placement->scope);
}

// Whether the size is that of an instance: it applies a parameter.
bool is_of_row(const Function& function, Dim size) {
  return std::ranges::any_of(function.params,
                             [&](BufferId param) { return mentions_function(size, function.buffer(param).name); });
}

// Whether the whole buffer is defined, so that all of it may be copied.
bool is_fully_defined(TypeContext& context, const Function& function, BufferId buffer) {
  bool defined = std::ranges::find(function.params, buffer) != function.params.end();
  for_each_statement(function.body, [&](const Stmt& stmt) {
    const auto* stage = std::get_if<Stage>(&stmt.form);
    // A sum of the rows of an instance that has none writes nothing.
    const bool may_be_empty = stage && std::ranges::any_of(stage->axes, [&](const Axis& axis) {
                                return axis.kind == AxisKind::kReduce && is_of_row(function, axis.extent);
                              });
    defined |= stage && !may_be_empty && writes_whole(context, function, *stage, buffer);
  });
  return defined;
}

// Guards of the copy that a stage reads. The stage must read the whole box, unless the whole buffer is defined.
Expected<std::vector<Guard>> guards_of_read(TypeContext& context, const Function& function, const Path& path,
                                            std::optional<size_t> loop, BufferId from) {
  std::vector<Guard> guards;
  if (is_fully_defined(context, function, from)) return guards;
  const std::string shown = local(context, function, from);
  if (!loop) return error(fmt::format("cannot prove that {} is written completely", shown));
  const std::set<Symbol> outside = outside_variables(function, path, *loop);
  for (const Guard& guard : path.stage().where)
    if (only_mentions(guard.left, outside) && only_mentions(guard.right, outside)) guards.push_back(guard);
  std::vector<Use> uses = uses_of(context, path.loop_at(*loop).body, from);
  std::erase_if(uses, [&](const Use& use) { return use.stage != &path.stage(); });
  const bool conditional = std::ranges::any_of(
      path.stage().body, [](const Stmt& stmt) { return !std::holds_alternative<Store>(stmt.form); });
  bool selects = false;
  for_each_expr(path.stage(), [&](Expr& expr) {
    for_each_node(expr, [&](const ExprNode& node) { selects |= std::holds_alternative<Select>(node.form); });
  });
  if (uses.size() != 1 || conditional || selects || !fills_box(context, uses[0], 0, guards) ||
      guards.size() != path.stage().where.size())
    return error(fmt::format("cannot prove that {} is written where the stage '{}' does not read it", shown,
                             context.name(path.stage().name)));
  return guards;
}

// The copy must skip every element that the stage does not write: it copies the guards over the outer loops, and has
// its own guards for the ends of the buffer. Other guards of the stage are an error.
Expected<std::vector<Guard>> guards_of_copy(TypeContext& context, const Function& function, const Path& path,
                                            std::optional<size_t> loop, BufferId to) {
  std::set<Symbol> outside(function.dims.begin(), function.dims.end());
  if (loop) outside = outside_variables(function, path, *loop);
  const Stage& stage = path.stage();
  std::vector<Guard> guards;
  for (const Guard& guard : stage.where) {
    if (only_mentions(guard.left, outside) && only_mentions(guard.right, outside)) {
      guards.push_back(guard);
      continue;
    }
    bool at_end = false;
    std::map<Symbol, Dim> values;
    for (const Axis& axis : stage.axes) {
      for_each_access(stage, [&](const Access& access) {
        const auto index = access.writes && access.buffer == to ? offset_index(access.indices, axis.var) : std::nullopt;
        if (!index || index->fold != 0) return;
        const Dim end = context.substitute(axis.extent, values);
        const bool ends = context.add(axis.extent, context.dim(index->offset)) ==
                          extent_at(context, function.buffer(to), index->position, access.indices);
        at_end |= ends && guard == Guard{axis.value, end};
        at_end |= index->offset == 0 && guard == Guard{context.dim(-1), axis.value};
      });
      values[axis.var] = axis.value;
    }
    if (!at_end)
      return error(fmt::format("the stage '{}' skips elements where {} is not below {}", context.name(stage.name),
                               context.str(guard.left), context.str(guard.right)));
  }
  return guards;
}

}  // namespace

Expected<Function> cache_read(TypeContext& context, Function function, Symbol stage, Symbol buffer,
                              std::optional<CachePlacement> placement) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(loop, find_placement_loop(context, *path, placement));
  std::optional<BufferId> from;
  for_each_access(path->stage(), [&](const Access& access) {
    if (!access.writes && function.buffer(access.buffer).name == buffer) from = access.buffer;
  });
  if (!from) return error(fmt::format("the stage '{}' reads no buffer %{}", context.name(stage), context.name(buffer)));
  if (buffers_written(path->steps[loop->value_or(outermost_step(*path))].stmt()).contains(*from))
    return error(
        fmt::format("%{} is written in the loops of the stage '{}'", context.name(buffer), context.name(stage)));
  TENON_TRY_ASSIGN(guards, guards_of_read(context, function, *path, *loop, *from));
  const Box box = box_of_stage(context, function, *path, *loop, *from);
  const Symbol name = fresh(context, function, fmt::format("{}_{}", context.name(buffer), context.name(stage)));
  const BufferId cache = add_buffer(function, name, *from);
  redirect(path->stage(), *from, cache);
  Stmt copy = copy_nest(context, function, name, *from, cache, box, std::move(*guards), around(*path, *loop));
  Body& body = body_for_copy(*path, *loop, cache, true);
  body.insert(body.begin(), std::move(copy));
  return placed(context, std::move(function), cache, stage, placement);
}

Expected<Function> cache_write(TypeContext& context, Function function, Symbol stage,
                               std::optional<CachePlacement> placement) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(loop, find_placement_loop(context, *path, placement));
  std::set<BufferId> written;
  for_each_access(path->stage(), [&](const Access& access) {
    if (access.writes) written.insert(access.buffer);
  });
  if (written.size() != 1)
    return error(fmt::format("the stage '{}' writes {} buffers, not one", context.name(stage), written.size()));
  const BufferId to = *written.begin();
  TENON_TRY(writes_exclusively(context, function, *path, *loop, to));
  TENON_TRY_ASSIGN(guards, guards_of_copy(context, function, *path, *loop, to));
  const Box box = box_of_stage(context, function, *path, *loop, to);
  const Symbol name = fresh(context, function, fmt::format("{}_cache", context.name(stage)));
  const BufferId cache = add_buffer(function, name, to);
  redirect(path->stage(), to, cache);
  Stmt copy = copy_nest(context, function, name, cache, to, box, std::move(*guards), around(*path, *loop));
  body_for_copy(*path, *loop, cache, false).push_back(std::move(copy));
  return placed(context, std::move(function), cache, stage, placement);
}

}  // namespace tenon::compiler::loop
