#include "compiler/schedules/product_steps.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/region.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
namespace {

Factors factors_in(const loop::Stage& sums) {
  auto factors = Factors::kElements;
  for (const loop::Stmt& stmt : sums.body) {
    const auto* store = std::get_if<loop::Store>(&stmt.form);
    if (!store) continue;
    loop::for_each_node(store->value, [&](const loop::ExprNode& node) {
      const auto* binary = std::get_if<loop::Binary>(&node.form);
      if (binary && loop::is_dot(binary->op)) factors = factors_of(binary->op);
    });
  }
  return factors;
}

}  // namespace

std::vector<Symbol> ProductSteps::loops_of(Symbol stage) {
  std::vector<Symbol> loops;
  if (const auto path = loop::find_stage(context_, function(), stage)) {
    for (const loop::For* loop : loop::all_loops(*path)) loops.push_back(loop->var);
  }
  return loops;
}

Dim ProductSteps::extent_of(Symbol stage, Symbol loop) {
  const auto path = loop::find_stage(context_, function(), stage);
  const auto at = path ? path->loop(loop) : std::nullopt;
  return at ? path->loop_at(*at).extent : context_.dim(0);
}

Expected<Symbol> ProductSteps::loop_of(Symbol stage, Symbol axis) {
  TENON_TRY_ASSIGN(path, loop::find_stage(context_, function(), stage));
  const auto found = std::ranges::find(path->stage().axes, axis, &loop::Axis::var);
  const std::vector<const loop::For*> loops = loop::all_loops(*path);
  for (size_t i = loops.size(); i-- > 0 && found != path->stage().axes.end();)
    if (loop::mentions({&found->value, 1}, loops[i]->var)) return loops[i]->var;
  return error(fmt::format("the axis '{}' of '{}' has no loop", context_.name(axis), context_.name(stage)));
}

std::set<Symbol> ProductSteps::stage_names() const {
  std::set<Symbol> names;
  for_each_statement(schedule_.function().body, [&](const loop::Stmt& stmt) {
    if (const auto* stage = std::get_if<loop::Stage>(&stmt.form)) names.insert(stage->name);
  });
  return names;
}

Expected<std::vector<Symbol>> ProductSteps::split(Symbol stage, Symbol loop, const std::string& factors) {
  std::set<Symbol> before = stage_names();
  if (Status status = step("split({}, {}, {})", stage, loop, factors); !status)
    return std::unexpected(std::move(status.error()));
  std::vector<Symbol> stages{stage};
  for_each_statement(schedule_.function().body, [&](const loop::Stmt& stmt) {
    const auto* copy = std::get_if<loop::Stage>(&stmt.form);
    if (copy && before.insert(copy->name).second) stages.push_back(copy->name);
  });
  return stages;
}

bool ProductSteps::has_condition_on(Symbol stage, Symbol loop) {
  const auto path = loop::find_stage(context_, function(), stage);
  bool found = false;
  for_each_expr(path->stage(), [&](loop::Expr& expr) {
    for_each_node(expr, [&](const loop::ExprNode& node) {
      const auto* selection = std::get_if<loop::Select>(&node.form);
      if (!selection) return;
      for_each_node(selection->condition, [&](const loop::ExprNode& part) {
        const auto* index = std::get_if<loop::IndexValue>(&part.form);
        if (!index) return;
        const Dims value = loop::over_loops(context_, path->stage(), {index->value});
        found |= loop::mentions(value, loop);
      });
    });
  });
  return found;
}

std::string ProductSteps::joined(const std::vector<Symbol>& names) const {
  std::vector<std::string_view> texts;
  for (const Symbol name : names) texts.push_back(context_.name(name));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string ProductSteps::axes(size_t rank) {
  std::string names;
  for (size_t i = 0; i < rank; ++i) names += (i == 0 ? "" : " ") + axis(i);
  return names;
}

std::optional<Symbol> ProductSteps::private_producer(loop::BufferId buffer) {
  loop::Function& function = this->function();
  std::vector<const loop::Stage*> writers, readers;
  for_each_statement(function.body, [&](const loop::Stmt& stmt) {
    const auto* stage = std::get_if<loop::Stage>(&stmt.form);
    if (!stage) return;
    bool reads = false, writes = false;
    loop::for_each_access(*stage, [&](const loop::Access& access) {
      if (access.buffer == buffer) (access.writes ? writes : reads) = true;
    });
    if (reads) readers.push_back(stage);
    if (writes) writers.push_back(stage);
  });
  const bool is_private = writers.size() == 1 && readers.size() == 1 && writers[0] != readers[0] &&
                          loop::find_alloc(function.body, buffer) && writers[0]->body.size() == 1 &&
                          std::holds_alternative<loop::Store>(writers[0]->body[0].form) && writers[0]->init.empty() &&
                          loop::writes_whole(context_, function, *writers[0], buffer);
  return is_private ? std::optional(writers[0]->name) : std::nullopt;
}

Expected<Symbol> ProductSteps::producer_or_copy(Symbol reader, loop::BufferId buffer) {
  if (const auto producer = private_producer(buffer)) return *producer;
  return stage_of_step("cache_read({}, {})", reader, schedule_.function().buffer(buffer).name);
}

const loop::Store& ProductSteps::assignment_of(Symbol stage) {
  const auto path = loop::find_stage(context_, function(), stage);
  return std::get<loop::Store>(path->stage().body[0].form);
}

Expected<ProductAxes> ProductSteps::axes_of(Symbol sums, const std::optional<MatrixAxes>& matrix) {
  TENON_TRY_ASSIGN(path, loop::find_stage(context_, function(), sums));
  const loop::Stage& stage = path->stage();
  const auto terms = std::ranges::find(stage.axes, loop::AxisKind::kReduce, &loop::Axis::kind);
  if (terms - stage.axes.begin() < 2)
    return error(fmt::format("the stage '{}' has no axes of rows and columns", context_.name(sums)));
  const auto rows = matrix ? std::ranges::find(stage.axes, matrix->rows, &loop::Axis::var) : terms - 2,
             columns = matrix ? std::ranges::find(stage.axes, matrix->columns, &loop::Axis::var) : terms - 1;
  if (rows == stage.axes.end() || columns == stage.axes.end())
    return error(fmt::format("the stage '{}' has no such axes of rows and columns", context_.name(sums)));
  ProductAxes axes;
  axes.terms = {terms, stage.axes.end()}, axes.rows = *rows, axes.columns = *columns, axes.factors = factors_in(stage);
  for (auto axis = stage.axes.begin(); axis != terms; ++axis)
    if (axis != rows && axis != columns) axes.batch.push_back(*axis);
  loop::for_each_access(stage, [&](const loop::Access& access) {
    if (!access.writes) return;
    axes.buffer = access.buffer;
    const auto position = [&](const loop::Axis& axis) {
      return static_cast<size_t>(std::ranges::find(access.indices, context_.dim(axis.var)) - access.indices.begin());
    };
    axes.row_position = position(axes.rows), axes.column_position = position(axes.columns);
  });
  axes.is_step = axes.batch.size() + 2 > function_.buffer(axes.buffer).rank();
  return axes;
}

}  // namespace tenon::compiler::schedules
