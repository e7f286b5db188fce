// The template of sliding windows: its steps, repeated by name, and the results of the loops that they give.
#include "compiler/schedules/sliding_window.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/loop/evaluate.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/text.h"
#include "compiler/loop/tree.h"
#include "tests/compiler/loop/must_parse.h"

namespace tenon::compiler::schedules {
namespace {

using loop::must_parse;
using runtime::Tensor;

struct Problem {
  int64_t rows = 1, columns = 1;  // of the input
  int64_t kernel_rows = 3, kernel_columns = 3, stride = 1, padding = 1;

  int64_t out_rows() const { return (rows + 2 * row_padding() - kernel_rows) / stride + 1; }
  int64_t out_columns() const { return (columns + 2 * padding - kernel_columns) / stride + 1; }
  int64_t row_padding() const { return kernel_rows == 1 ? 0 : padding; }
};

// Depthwise convolution with ReLU as plain loops.
std::string depthwise(const Problem& p) {
  constexpr std::string_view kText =
      R"(loop @depthwise(%x: Tensor[(2, 3, {rows}, {columns}), f32], %w: Tensor[(3, {kh}, {kw}), f32]) -> (%y: Tensor[(2, 3, {oh}, {ow}), f32]) {{
  alloc %sums: Tensor[(2, 3, {oh}, {ow}), f32] {{
    for n in (2) {{ for c in (3) {{ for h in ({oh}) {{ for w in ({ow}) {{ for kw in ({kw}) {{ for kh in ({kh}) {{
      stage conv(n in (2) at (n), c in (3) at (c), h in ({oh}) at (h), w in ({ow}) at (w), reduce kw in ({kw}) at (kw), reduce kh in ({kh}) at (kh)) {{
        init {{ %sums[n, c, h, w] = f32(0); }}
        %sums[n, c, h, w] = %sums[n, c, h, w] + %w[c, kh, kw] * select(index(0) <= index({s}*h + kh - {pr}) and index({s}*h + kh - {pr}) < index({rows}), select(index(0) <= index({s}*w + kw - {p}) and index({s}*w + kw - {p}) < index({columns}), %x[n, c, {s}*h + kh - {pr}, {s}*w + kw - {p}], f32(0)), f32(0));
      }}
    }} }} }} }} }} }}
    for n in (2) {{ for c in (3) {{ for h in ({oh}) {{ for w in ({ow}) {{
      stage y(n in (2) at (n), c in (3) at (c), h in ({oh}) at (h), w in ({ow}) at (w)) {{ %y[n, c, h, w] = max(%sums[n, c, h, w], f32(0)); }}
    }} }} }} }}
  }}
}}
)";
  return fmt::format(fmt::runtime(kText), fmt::arg("rows", p.rows), fmt::arg("columns", p.columns),
                     fmt::arg("kh", p.kernel_rows), fmt::arg("kw", p.kernel_columns), fmt::arg("oh", p.out_rows()),
                     fmt::arg("ow", p.out_columns()), fmt::arg("s", p.stride), fmt::arg("p", p.padding),
                     fmt::arg("pr", p.row_padding()));
}

Tensor window_tensor(runtime::Shape shape) {
  Tensor tensor(runtime::DType::kF32, std::move(shape));
  auto data = tensor.data<float>();
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(static_cast<int>(i * 37 % 29) - 14) / 7;
  return tensor;
}

size_t least_cost(std::string_view, const std::vector<Option>& options) {
  return static_cast<size_t>(std::ranges::min_element(options, {}, &Option::cost) - options.begin());
}

// The stages of sums, and those among them without a condition.
std::pair<int, int> count_sums(const TypeContext& context, const loop::Function& function) {
  int all = 0, unconditional = 0;
  loop::for_each_statement(function.body, [&](const loop::Stmt& stmt) {
    const auto* stage = std::get_if<loop::Stage>(&stmt.form);
    if (!stage || !context.name(stage->name).starts_with("conv") ||
        context.name(stage->name).find("init") != std::string_view::npos)
      return;
    bool has_condition = false;
    loop::for_each_node(std::get<loop::Store>(stage->body.front().form).value, [&](const loop::ExprNode& node) {
      has_condition |= std::holds_alternative<loop::Select>(node.form);
    });
    ++all, unconditional += has_condition ? 0 : 1;
  });
  return {all, unconditional};
}

loop::Function check_windows(TypeContext& context, const Problem& problem, std::string_view level) {
  const loop::Function algorithm = must_parse(context, depthwise(problem));
  loop::Schedule schedule(context, algorithm);
  const WindowStages stages{context.symbol("conv"), context.symbol("y")};
  const Status status = schedule_windows(context, schedule, stages, *find_machine(level), least_cost);
  const std::string text = loop::print(context, schedule.function());
  EXPECT_TRUE(status) << level << status.error().str() << text;
  if (!status) return algorithm;
  EXPECT_NE(text.find("in registers"), std::string::npos) << text;

  loop::Schedule again(context, algorithm);
  const Status repeated = again.apply(schedule.steps());
  EXPECT_TRUE(repeated) << repeated.error().str();
  EXPECT_TRUE(equal(again.function(), schedule.function()));

  const std::vector<Tensor> params{window_tensor({2, 3, problem.rows, problem.columns}),
                                   window_tensor({3, problem.kernel_rows, problem.kernel_columns})};
  const auto expected = loop::evaluate(context, algorithm, params);
  const auto results = loop::evaluate(context, schedule.function(), params);
  EXPECT_TRUE(expected && results) << level << text;
  if (expected && results) {
    EXPECT_EQ(*results, *expected) << level << text;
  }
  return schedule.function();
}

TEST(WindowTemplate, ItsStepsGiveEqualResultsOnAllMachines) {
  const Problem problems[] = {{.rows = 15, .columns = 27},
                              {.rows = 14, .columns = 14},
                              {.rows = 7, .columns = 7},
                              {.rows = 5, .columns = 3},
                              {.rows = 9, .columns = 1},
                              {.rows = 17, .columns = 18, .stride = 2},
                              {.rows = 28, .columns = 151, .stride = 2},
                              {.rows = 11, .columns = 13, .kernel_rows = 5, .kernel_columns = 5, .padding = 2},
                              {.rows = 1, .columns = 70, .kernel_rows = 1, .kernel_columns = 9, .padding = 4},
                              {.rows = 12, .columns = 12, .padding = 0}};
  for (const Problem& problem : problems) {
    for (const std::string_view level : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
      SCOPED_TRACE(fmt::format("{}x{}, kernel {}x{}, {}", problem.rows, problem.columns, problem.kernel_rows,
                               problem.kernel_columns, level));
      TypeContext context;
      check_windows(context, problem, level);
    }
  }
}

TEST(WindowTemplate, FewRegistersHoldSmallTiles) {
  TypeContext context;
  check_windows(context, {.rows = 9, .columns = 10}, "armv7-a");
}

TEST(WindowTemplate, AStridedWindowReadsElementsByTheirRemainder) {
  TypeContext context;
  const loop::Function function = check_windows(context, {.rows = 38, .columns = 38, .stride = 2}, "x86-64-v3");
  EXPECT_NE(loop::print(context, function).find("%x_conv: Tensor[(1, 1, 38, 2, 19), f32] in stack"), std::string::npos)
      << loop::print(context, function);
}

TEST(WindowTemplate, ASmallStridedWindowOfShortRowsReadsInPlace) {
  for (const auto& [level, columns] : {std::pair("x86-64-v3", 14), {"x86-64-v4", 14}, {"x86-64-v4", 38}}) {
    TypeContext context;
    const loop::Function function = check_windows(context, {.rows = columns, .columns = columns, .stride = 2}, level);
    EXPECT_EQ(loop::print(context, function).find("%x_conv"), std::string::npos) << loop::print(context, function);
  }
}

// A row of seven is a register of eight, whose last lane is not stored.
TEST(WindowTemplate, ShortRowsUseARegisterInPart) {
  for (const auto& [level, columns, lanes] :
       {std::tuple("x86-64-v3", 7, 8), {"x86-64-v3", 3, 2}, {"x86-64-v4", 14, 16}, {"x86-64-v4", 3, 4}}) {
    TypeContext context;
    const loop::Function function = check_windows(context, {.rows = 7, .columns = columns}, level);
    const std::string text = loop::print(context, function);
    EXPECT_NE(text.find(fmt::format("in ({}) vector", lanes)), std::string::npos) << text;
  }
}

TEST(WindowTemplate, BlocksInsideTheInputHaveNoConditions) {
  TypeContext context;
  const loop::Function function = check_windows(context, {.rows = 28, .columns = 32}, "x86-64-v3");
  // Three ranges of rows times three of columns, of which the middle ones are inside.
  EXPECT_EQ(count_sums(context, function), std::pair(9, 1)) << loop::print(context, function);
}

TEST(WindowTemplate, RowsAreStoredWholeByOverlappingVectors) {
  TypeContext context;
  const loop::Function function = check_windows(context, {.rows = 14, .columns = 14}, "x86-64-v3");
  loop::for_each_statement(function.body, [&](const loop::Stmt& stmt) {
    const auto* stage = std::get_if<loop::Stage>(&stmt.form);
    if (stage && context.name(stage->name).starts_with("y")) {
      EXPECT_TRUE(stage->where.empty()) << loop::print(context, function);
    }
  });
}

TEST(WindowTemplate, ARefusedStepEndsItWithTheReason) {
  TypeContext context;
  loop::Schedule schedule(context, must_parse(context, depthwise({.rows = 8, .columns = 8})));
  const Status status = schedule_windows(context, schedule, {context.symbol("conv"), context.symbol("conv")},
                                         *find_machine("x86-64-v3"), least_cost);
  ASSERT_FALSE(status);
  EXPECT_FALSE(status.error().str().empty());
}

}  // namespace
}  // namespace tenon::compiler::schedules
