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

Expected<ProductAxes> ProductSteps::axes_of(Symbol sums) {
  TENON_TRY_ASSIGN(path, loop::find_stage(context_, function(), sums));
  const loop::Stage& stage = path->stage();
  const auto terms = std::ranges::find(stage.axes, loop::AxisKind::kReduce, &loop::Axis::kind);
  if (terms - stage.axes.begin() < 2)
    return error(fmt::format("the stage '{}' has no axes of rows and columns", context_.name(sums)));
  ProductAxes axes{.batch = {stage.axes.begin(), terms - 2},
                   .terms = {terms, stage.axes.end()},
                   .rows = *(terms - 2),
                   .columns = *(terms - 1),
                   .factors = factors_in(stage)};
  loop::for_each_access(stage, [&](const loop::Access& access) {
    if (access.writes) axes.buffer = access.buffer;
  });
  axes.is_step = axes.batch.size() + 2 > function_.buffer(axes.buffer).rank();
  return axes;
}

}  // namespace tenon::compiler::schedules
