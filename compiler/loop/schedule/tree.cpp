#include "compiler/loop/schedule/tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"

namespace tenon::compiler::loop {
namespace {

bool find_in(Body& body, Symbol stage, std::vector<Path::Step>& steps) {
  for (size_t at = 0; at < body.size(); ++at) {
    steps.push_back({&body, at});
    if (const auto* found = std::get_if<Stage>(&body[at].form); found && found->name == stage) return true;
    bool inside = false;
    for_each_body(body[at], [&](Body& inner) { inside = inside || find_in(inner, stage, steps); });
    if (inside) return true;
    steps.pop_back();
  }
  return false;
}

// Each expression of statements, and each store.
void visit_body(Body& body, const std::function<void(Expr&)>& expr, const std::function<void(Store&)>& store) {
  for_each_statement(body, [&](Stmt& stmt) {
    if (auto* to = std::get_if<Store>(&stmt.form)) {
      if (store) store(*to);
      if (expr) expr(to->value);
    } else if (auto* branch = std::get_if<If>(&stmt.form)) {
      if (expr) expr(branch->condition);
    } else if (auto* let = std::get_if<Let>(&stmt.form)) {
      if (expr) expr(let->value);
    }
  });
}

std::set<BufferId> buffers(const Stmt& stmt, bool written) {
  std::set<BufferId> found;
  auto access = [&](const Access& one) {
    if (one.writes == written) found.insert(one.buffer);
  };
  const std::function<void(const Stmt&)> visit = [&](const Stmt& one) {
    if (const auto* call = std::get_if<CallLibrary>(&one.form)) {
      const std::vector<BufferId>& list = written ? call->outputs : call->inputs;
      found.insert(list.begin(), list.end());
    }
    for_each_own_access(one, access);
    for_each_body(one, [&](const Body& body) { std::ranges::for_each(body, visit); });
  };
  visit(stmt);
  return found;
}

}  // namespace

std::optional<size_t> Path::loop(Symbol var) const {
  for (size_t step = 0; step < steps.size(); ++step) {
    if (is_loop(step) && loop_at(step).var == var) return step;
  }
  return std::nullopt;
}

Expected<Path> find_stage(const Context& context, Function& function, Symbol stage) {
  Path path;
  if (find_in(function.body, stage, path.steps)) return path;
  return error(fmt::format("there is no stage '{}'", context.name(stage)));
}

Expected<size_t> find_loop(const Context& context, const Path& path, Symbol var) {
  if (const auto found = path.loop(var)) return *found;
  std::string loops;
  for (size_t step = 0; step < path.steps.size(); ++step) {
    if (path.is_loop(step))
      loops += fmt::format("{}{}", loops.empty() ? "" : ", ", context.name(path.loop_at(step).var));
  }
  return error(fmt::format("the stage '{}' stands in no loop '{}'", context.name(path.stage().name), context.name(var)),
               {}, loops.empty() ? "it stands in none" : fmt::format("its loops are {}", loops));
}

void for_each_stage(Stmt& stmt, const std::function<void(Stage&)>& visit) {
  if (auto* stage = std::get_if<Stage>(&stmt.form)) visit(*stage);
  for_each_body(stmt, [&](Body& body) {
    for (Stmt& inner : body) for_each_stage(inner, visit);
  });
}
void for_each_expr(Stage& stage, const std::function<void(Expr&)>& visit) {
  visit_body(stage.init, visit, {});
  visit_body(stage.body, visit, {});
}
void for_each_store(Stage& stage, const std::function<void(Store&)>& visit) {
  visit_body(stage.init, {}, visit);
  visit_body(stage.body, {}, visit);
}
std::set<BufferId> buffers_read(const Stmt& stmt) { return buffers(stmt, false); }
std::set<BufferId> buffers_written(const Stmt& stmt) { return buffers(stmt, true); }

void substitute(Context& context, Function& function, Stmt& stmt, const std::map<Symbol, Dim>& values) {
  auto dim = [&](Dim& one) { one = context.substitute(one, values); };
  if (auto* stage = std::get_if<Stage>(&stmt.form)) {
    for (Axis& axis : stage->axes) dim(axis.value);
    for (Guard& guard : stage->where) dim(guard.left), dim(guard.right);
    return;
  }
  if (auto* loop = std::get_if<For>(&stmt.form)) dim(loop->extent);
  if (auto* branch = std::get_if<If>(&stmt.form)) branch->condition = substitute(context, branch->condition, values);
  if (auto* let = std::get_if<Let>(&stmt.form)) {
    dim(let->extent);
    let->value = substitute(context, let->value, values);
  }
  if (auto* alloc = std::get_if<Alloc>(&stmt.form)) {
    for (BufferAxis& axis : function.buffers[index(alloc->buffer)].axes) dim(axis.extent);
  }
  for_each_body(stmt, [&](Body& body) {
    for (Stmt& inner : body) substitute(context, function, inner, values);
  });
}

Dims over_loops(Context& context, const Stage& stage, const Dims& dims) {
  std::map<Symbol, Dim> values;
  for (const Axis& axis : stage.axes) values[axis.var] = axis.value;
  Dims result;
  for (Dim dim : dims) result.push_back(context.substitute(dim, values));
  return result;
}

Symbol fresh(Context& context, const Function& function, std::string base) {
  std::set<Symbol> used(function.dims.begin(), function.dims.end());
  for (const Buffer& buffer : function.buffers) {
    used.insert(buffer.name);
    for (const BufferAxis& axis : buffer.axes) used.insert(axis.var);
  }
  for_each_statement(function.body, [&](const Stmt& stmt) {
    if (const auto* loop = std::get_if<For>(&stmt.form)) used.insert(loop->var);
    if (const auto* let = std::get_if<Let>(&stmt.form)) used.insert(let->var);
    if (const auto* stage = std::get_if<Stage>(&stmt.form)) used.insert(stage->name);
  });
  while (used.contains(context.symbol(base))) base += '_';
  return context.symbol(base);
}

std::optional<Path::Step> find_alloc(Body& body, BufferId buffer) {
  for (size_t at = 0; at < body.size(); ++at) {
    if (const auto* alloc = std::get_if<Alloc>(&body[at].form); alloc && alloc->buffer == buffer)
      return Path::Step{&body, at};
    std::optional<Path::Step> found;
    for_each_body(body[at], [&](Body& inner) {
      if (!found) found = find_alloc(inner, buffer);
    });
    if (found) return found;
  }
  return std::nullopt;
}

DimBounds bounds_of(const Path& path, size_t steps) {
  DimBounds bounds;
  for (size_t step = 0; step < steps; ++step) {
    if (!path.is_loop(step)) continue;
    const For& loop = path.loop_at(step);
    DimRange range{.lo = 0, .hi = {}};
    if (const auto size = loop.extent.constant()) range.hi = *size - 1;
    bounds[loop.var] = range;
  }
  return bounds;
}

bool visits_points_once(Context& context, const Path& path, size_t step) {
  std::map<Symbol, std::optional<int64_t>> open;  // the loops that no axis has yet, and their sizes
  for (; step + 1 < path.steps.size(); ++step) {
    if (path.is_loop(step)) open[path.loop_at(step).var] = path.loop_at(step).extent.constant();
  }
  for (const Axis& axis : path.stage().axes) {
    // Coefficients and sizes: a sum is another one for other values if each coefficient is more than the smaller ones
    // can make up together.
    std::vector<std::pair<int64_t, std::optional<int64_t>>> parts;
    Dim rest = axis.value;
    for (auto loop = open.begin(); loop != open.end();) {
      bool used = false;
      for_each_variable(rest, [&](Symbol var) { used |= var == loop->first; });
      if (!used) {
        ++loop;
        continue;
      }
      const auto linear = context.linear_in(loop->first, rest);
      const auto factor = linear ? linear->first.constant() : std::nullopt;
      if (!factor || *factor < 1) return false;
      parts.emplace_back(*factor, loop->second);
      rest = linear->second;
      loop = open.erase(loop);
    }
    std::ranges::sort(parts);
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      if (!parts[i].second || parts[i + 1].first / parts[i].first < *parts[i].second) return false;
    }
  }
  return open.empty();  // a loop that no axis has repeats every point
}

Stmt nest(std::vector<For> loops, Stmt inner) {
  for (size_t i = loops.size(); i-- > 0;) {
    loops[i].body.clear();
    loops[i].body.push_back(std::move(inner));
    inner = Stmt{std::move(loops[i])};
  }
  return inner;
}

Stmt copy_nest(Context& context, const Function& function, Symbol name, BufferId from, BufferId to) {
  Stage stage;
  stage.name = name;
  std::vector<For> loops;
  Dims indices;
  std::map<Symbol, Dim> over_axes, over_loops;  // for the sizes of ragged axes
  const Buffer& buffer = function.buffer(from);
  for (size_t at = 0; at < buffer.rank(); ++at) {
    const Symbol axis = context.symbol(fmt::format("c{}", at));
    const Symbol loop = fresh(context, function, fmt::format("{}_{}", context.name(name), at));
    const Dim extent = buffer.axes[at].extent;
    loops.push_back({.var = loop, .extent = context.substitute(extent, over_loops), .mark = Mark::kSerial, .body = {}});
    stage.axes.push_back({.var = axis,
                          .extent = context.substitute(extent, over_axes),
                          .kind = AxisKind::kSpatial,
                          .value = context.dim(loop)});
    indices.push_back(context.dim(axis));
    over_axes[buffer.axes[at].var] = context.dim(axis);
    over_loops[buffer.axes[at].var] = context.dim(loop);
  }
  stage.body.push_back({Store{to, indices, load(function, from, indices)}});
  return nest(std::move(loops), Stmt{std::move(stage)});
}

}  // namespace tenon::compiler::loop
