// Primitives that put a copy between a stage and what it reads or writes: cache_read, cache_write.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/storage.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// The statement in the life of a buffer.
void surround(const Path::Step& place, BufferId buffer) {
  Alloc alloc{.buffer = buffer, .scope = Scope::kHeap, .body = {}};
  alloc.body.push_back(std::move(place.stmt()));
  place.stmt() = Stmt{std::move(alloc)};
}

// The body that the steps of a copy stand in: of the loop, or of an Alloc that is put around the whole nest.
Body& place_of(const Path& path, std::optional<size_t> loop, BufferId cache) {
  const size_t step = loop.value_or(outermost(path));
  surround(path.steps[step], cache);
  Body& around = std::get<Alloc>(path.steps[step].stmt().form).body;
  return loop ? std::get<For>(around.front().form).body : around;
}

void redirect(Stage& stage, BufferId from, BufferId to) {
  for_each_expr(stage, [&](Expr& expr) {
    expr = rewrite(expr, [&](const ExprNode& node) -> Expr {
      const auto* load = std::get_if<Load>(&node.form);
      if (!load || load->buffer != from) return nullptr;
      ExprNode copy = node;
      std::get<Load>(copy.form).buffer = to;
      return std::make_shared<const ExprNode>(std::move(copy));
    });
  });
  for_each_store(stage, [&](Store& store) {
    if (store.buffer == from) store.buffer = to;
  });
  for_each_statement(stage.body, [&](Stmt& stmt) {
    auto* intrinsic = std::get_if<Intrinsic>(&stmt.form);
    if (!intrinsic) return;
    for (auto* operands : {&intrinsic->inputs, &intrinsic->outputs})
      for (Operand& operand : *operands)
        if (operand.buffer == from) operand.buffer = to;
  });
}

// What the stage takes of the buffer in an iteration of the loop; the whole buffer where there is none.
Box box_of_stage(TypeContext& context, Function& function, const Path& path, std::optional<size_t> loop,
                 BufferId buffer) {
  Box box(function.buffer(buffer).rank());
  if (!loop) return box;
  bool first = true;
  const std::set<Symbol> outside = outside_variables(function, path, *loop);
  for (const Use& use : uses_of(context, path.loop_at(*loop).body, buffer)) {
    if (use.stage != &path.stage()) continue;
    const Box one = box_of(context, function, buffer, use, 0, outside);
    box = first ? one : hull(context, box, one);
    first = false;
  }
  return box;
}

Expected<std::optional<size_t>> find_place(const TypeContext& context, const Path& path,
                                           std::optional<CachePlace> place) {
  if (!place) return std::nullopt;
  TENON_TRY_ASSIGN(at, find_loop(context, path, place->loop));
  return *at;
}

Expected<Function> placed(TypeContext& context, Function function, BufferId cache, Symbol stage,
                          std::optional<CachePlace> place) {
  if (!place) return function;
  return store_in_loop(context, std::move(function), cache, stage, place->loop, place->scope);
}

// Whether all of the buffer is there to be copied.
bool is_whole(TypeContext& context, const Function& function, BufferId buffer) {
  bool whole = std::ranges::find(function.params, buffer) != function.params.end();
  for_each_statement(function.body, [&](const Stmt& stmt) {
    const auto* stage = std::get_if<Stage>(&stmt.form);
    whole |= stage && writes_whole(context, function, *stage, buffer);
  });
  return whole;
}

// Guards of the copy that a stage reads. It reads the whole box, or all of that may be read.
Expected<std::vector<Guard>> guards_of_read(TypeContext& context, const Function& function, const Path& path,
                                            std::optional<size_t> loop, BufferId from) {
  std::vector<Guard> guards;
  if (is_whole(context, function, from)) return guards;
  const std::string shown = local(context, function, from);
  if (!loop) return error(fmt::format("{} is not seen to be written whole", shown));
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
    return error(fmt::format("{} is not seen to be written where the stage '{}' may not read it", shown,
                             context.name(path.stage().name)));
  return guards;
}

// What keeps the stage from writing an element keeps the copy from copying it: guards over the loops outside, which it
// has too, or those at the ends of the buffer, where it has its own.
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
        const auto own = access.writes && access.buffer == to ? own_index(access.indices, axis.var) : std::nullopt;
        if (!own || own->fold != 0) return;
        const Dim end = context.substitute(axis.extent, values);
        const bool ends =
            context.add(axis.extent, context.dim(own->offset)) == function.buffer(to).axes[own->at].extent;
        at_end |= ends && guard == Guard{axis.value, end};
        at_end |= own->offset == 0 && guard == Guard{context.dim(-1), axis.value};
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
                              std::optional<CachePlace> place) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(loop, find_place(context, *path, place));
  std::optional<BufferId> from;
  for_each_access(path->stage(), [&](const Access& access) {
    if (!access.writes && function.buffer(access.buffer).name == buffer) from = access.buffer;
  });
  if (!from) return error(fmt::format("the stage '{}' reads no buffer %{}", context.name(stage), context.name(buffer)));
  if (buffers_written(path->steps[loop->value_or(outermost(*path))].stmt()).contains(*from))
    return error(
        fmt::format("%{} is written in the loops of the stage '{}'", context.name(buffer), context.name(stage)));
  TENON_TRY_ASSIGN(guards, guards_of_read(context, function, *path, *loop, *from));
  const Box box = box_of_stage(context, function, *path, *loop, *from);
  const Symbol name = fresh(context, function, fmt::format("{}_{}", context.name(buffer), context.name(stage)));
  const BufferId cache = add_buffer(function, name, *from);
  redirect(path->stage(), *from, cache);
  Stmt copy = copy_nest(context, function, name, *from, cache, box, std::move(*guards));
  Body& body = place_of(*path, *loop, cache);
  body.insert(body.begin(), std::move(copy));
  return placed(context, std::move(function), cache, stage, place);
}

Expected<Function> cache_write(TypeContext& context, Function function, Symbol stage, std::optional<CachePlace> place) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(loop, find_place(context, *path, place));
  std::set<BufferId> written;
  for_each_access(path->stage(), [&](const Access& access) {
    if (access.writes) written.insert(access.buffer);
  });
  if (written.size() != 1)
    return error(fmt::format("the stage '{}' writes {} buffers, not one", context.name(stage), written.size()));
  const BufferId to = *written.begin();
  TENON_TRY(writes_alone(context, function, *path, *loop, to));
  TENON_TRY_ASSIGN(guards, guards_of_copy(context, function, *path, *loop, to));
  const Box box = box_of_stage(context, function, *path, *loop, to);
  const Symbol name = fresh(context, function, fmt::format("{}_cache", context.name(stage)));
  const BufferId cache = add_buffer(function, name, to);
  redirect(path->stage(), to, cache);
  Stmt copy = copy_nest(context, function, name, cache, to, box, std::move(*guards));
  place_of(*path, *loop, cache).push_back(std::move(copy));
  return placed(context, std::move(function), cache, stage, place);
}

}  // namespace tenon::compiler::loop
