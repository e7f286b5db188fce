// Primitives that put a buffer between a stage and what it reads or writes.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/try.h"
#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/tree.h"

namespace tenon::compiler::loop {
namespace {

// The statement of the outermost body that the stage stands in, behind the buffers that are made around it.
size_t outermost(const Path& path) {
  size_t step = 0;
  while (std::holds_alternative<Alloc>(path.steps[step].stmt().form)) ++step;
  return step;
}

BufferId add_buffer(Function& function, Symbol name, BufferId like) {
  Buffer buffer = function.buffer(like);
  buffer.name = name;
  function.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(function.buffers.size() - 1);
}

// The statement, in the life of a new buffer, before or behind another one.
void surround(Path::Step place, BufferId buffer, Stmt other, bool before) {
  Stmt own = std::move(place.stmt());
  Alloc alloc{.buffer = buffer, .scope = Scope::kHeap, .body = {}};
  if (before) alloc.body.push_back(std::move(other)), alloc.body.push_back(std::move(own));
  else alloc.body.push_back(std::move(own)), alloc.body.push_back(std::move(other));
  place.stmt() = Stmt{std::move(alloc)};
}

void redirect_loads(Stage& stage, BufferId from, BufferId to) {
  for_each_expr(stage, [&](Expr& expr) {
    expr = rewrite(expr, [&](const ExprNode& node) -> Expr {
      const auto* load = std::get_if<Load>(&node.form);
      if (!load || load->buffer != from) return nullptr;
      ExprNode copy = node;
      std::get<Load>(copy.form).buffer = to;
      return std::make_shared<const ExprNode>(std::move(copy));
    });
  });
}

}  // namespace

Expected<Function> cache_read(Context& context, Function function, Symbol stage, Symbol buffer) {
  TENON_TAKE(path, find_stage(context, function, stage));
  std::optional<BufferId> from;
  for_each_access(path->stage(), [&](const Access& load) {
    if (!load.writes && function.buffer(load.buffer).name == buffer) from = load.buffer;
  });
  if (!from) return error(fmt::format("the stage '{}' reads no buffer %{}", context.name(stage), context.name(buffer)));
  const Path::Step place = path->steps[outermost(*path)];
  if (buffers_written(place.stmt()).contains(*from))
    return error(
        fmt::format("%{} is written in the loops of the stage '{}'", context.name(buffer), context.name(stage)));
  const Symbol name = fresh(context, function, fmt::format("{}_{}", context.name(buffer), context.name(stage)));
  const BufferId cache = add_buffer(function, name, *from);
  redirect_loads(path->stage(), *from, cache);
  surround(place, cache, copy_nest(context, function, name, *from, cache), true);
  return function;
}

Expected<Function> cache_write(Context& context, Function function, Symbol stage) {
  TENON_TAKE(path, find_stage(context, function, stage));
  Stage& writer = path->stage();
  std::set<BufferId> written;
  for_each_store(writer, [&](Store& store) { written.insert(store.buffer); });
  if (written.size() != 1)
    return error(fmt::format("the stage '{}' writes {} buffers, not one", context.name(stage), written.size()));
  const BufferId to = *written.begin();
  const std::string shown = fmt::format("%{}", context.name(function.buffer(to).name));
  Status status;
  auto refuse = [&](std::string what) {
    if (status) status = error(std::move(what));
  };
  for (const Axis& axis : writer.axes) {
    if (axis.kind == AxisKind::kScan) refuse(fmt::format("'{}' is a scan axis", context.name(axis.var)));
  }
  // The stage writes the whole buffer, and nobody else touches it meanwhile.
  const Buffer& buffer = function.buffer(to);
  for_each_store(writer, [&](Store& store) {
    std::map<Symbol, Dim> axes;
    for (size_t i = 0; i < store.indices.size(); ++i) {
      const auto var = store.indices[i].variable();
      const auto axis = std::ranges::find_if(writer.axes, [&](const Axis& one) { return var && one.var == *var; });
      if (axis == writer.axes.end() || axis->extent != context.substitute(buffer.axes[i].extent, axes))
        refuse(fmt::format("{} is not written whole, at the axes of the stage", shown));
      else axes[buffer.axes[i].var] = context.dim(axis->var);
    }
  });
  bool reads = false, reduces = false;
  for_each_access(writer, [&](const Access& load) { reads |= !load.writes && load.buffer == to; });
  for (const Axis& axis : writer.axes) reduces |= axis.kind == AxisKind::kReduce;
  if (reads && writer.init.empty())
    refuse(fmt::format("the stage '{}' adds to what {} held before", context.name(stage), shown));
  const bool conditional =
      std::ranges::any_of(writer.body, [](const Stmt& stmt) { return !std::holds_alternative<Store>(stmt.form); });
  if (conditional) refuse(fmt::format("the stage '{}' does not write at every point", context.name(stage)));
  const Path::Step place = path->steps[outermost(*path)];
  for_each_stage(place.stmt(), [&](Stage& other) {
    if (other.name == stage) return;
    bool touches = false;
    for_each_store(other, [&](Store& store) { touches |= store.buffer == to; });
    for_each_access(other, [&](const Access& load) { touches |= load.buffer == to; });
    if (touches) refuse(fmt::format("the stage '{}' uses {} in the same loops", context.name(other.name), shown));
  });
  TENON_TRY(status);
  const Symbol name = fresh(context, function, fmt::format("{}_cache", context.name(stage)));
  const BufferId cache = add_buffer(function, name, to);
  redirect_loads(writer, to, cache);
  for_each_store(writer, [&](Store& store) { store.buffer = cache; });
  surround(place, cache, copy_nest(context, function, name, cache, to), false);
  return function;
}

}  // namespace tenon::compiler::loop
