// The template of matrix products: its steps, repeated by name, and the results of the loops that they give.
#include "compiler/schedules/product.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/loop/evaluate.h"
#include "compiler/loop/rearrange.h"
#include "compiler/loop/text.h"
#include "compiler/loop/tree.h"
#include "compiler/schedules/register_tile.h"
#include "tests/compiler/loop/must_parse.h"
#include "tests/compiler/schedules/filled.h"

namespace tenon::compiler::schedules {
namespace {

using loop::must_parse;
using runtime::Tensor;

std::string dense(int64_t columns) {
  return fmt::format(
      R"(loop @dense[n](%x: Tensor[(n, 5), f32], %w: Tensor[({0}, 5), f32]) -> (%y: Tensor[(n, {0}), f32]) {{
  alloc %d: Tensor[(n, {0}), f32] {{
    for i in (n) {{ for j in ({0}) {{ for k in (5) {{
      stage dot(i in (n) at (i), j in ({0}) at (j), reduce k in (5) at (k)) {{
        init {{ %d[i, j] = f32(0); }}
        %d[i, j] = %d[i, j] + %x[i, k] * %w[j, k];
      }}
    }} }} }}
    for i in (n) {{ for j in ({0}) {{
      stage y(i in (n) at (i), j in ({0}) at (j)) {{ %y[i, j] = max(%d[i, j], f32(0)); }}
    }} }}
  }}
}}
)",
      columns);
}

size_t cheapest(std::string_view, const std::vector<Option>& options) {
  return static_cast<size_t>(std::ranges::min_element(options, {}, &Option::cost) - options.begin());
}

// Steps for a machine; `w` is a constant where `constant` is set.
void check(std::string_view level, bool constant, int64_t columns = 42, std::vector<std::string>* steps = nullptr) {
  TypeContext context;
  const loop::Function algorithm = must_parse(context, dense(columns));
  std::set<loop::BufferId> constants;
  if (constant) constants.insert(algorithm.params[1]);
  loop::Schedule schedule(context, algorithm, constants);
  const ProductStages product{context.symbol("dot"), context.symbol("y"), context.symbol("w")};
  const Status status = schedule_product(context, schedule, product, *find_machine(level), cheapest);
  ASSERT_TRUE(status) << level << status.error().str() << loop::print(context, schedule.function());
  EXPECT_EQ(schedule.loads().size(), constant ? 1u : 0u);
  const std::string text = loop::print(context, schedule.function());
  EXPECT_NE(text.find("in registers"), std::string::npos) << text;
  loop::for_each_statement(schedule.function().body, [&](const loop::Stmt& stmt) {
    const auto* stage = std::get_if<loop::Stage>(&stmt.form);
    if (!stage || !context.name(stage->name).starts_with("dot")) return;
    EXPECT_TRUE(stage->where.empty()) << level << ": a guard in the micro-kernel: " << text;
    const auto* sum = stage->body.empty() ? nullptr : std::get_if<loop::Store>(&stage->body.front().form);
    EXPECT_TRUE(sum && !std::holds_alternative<loop::Select>(sum->value->form)) << level << text;
  });

  loop::Schedule again(context, algorithm, constants);
  const Status repeated = again.apply(schedule.steps());
  ASSERT_TRUE(repeated) << repeated.error().str();
  EXPECT_TRUE(equal(again.function(), schedule.function()));

  if (steps) *steps = schedule.steps();

  for (const int64_t n : {0, 1, 2, 3, 4, 5, 14, 31}) {
    std::vector<Tensor> params{filled({n, 5}), filled({columns, 5})};
    const auto expected = loop::evaluate(context, algorithm, params);
    for (const loop::LoadStep& load : schedule.loads()) {
      const auto packed = loop::rearranged(context, load.load, std::vector{params[1]});
      ASSERT_TRUE(packed) << packed.error().str();
      const auto evaluated = loop::evaluate(context, load.load, std::vector{params[1]});
      ASSERT_TRUE(evaluated) << evaluated.error().str();
      EXPECT_EQ(*packed, evaluated->front());
      params.push_back(*packed);
    }
    const auto results = loop::evaluate(context, schedule.function(), params);
    ASSERT_TRUE(expected && results) << level << results.error().str() << text;
    EXPECT_EQ(*results, *expected) << level << " n = " << n;
  }
}

TEST(ProductTemplate, ItsStepsGiveEqualResultsOnAllMachines) {
  for (const std::string_view level : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a"}) check(level, true);
}

TEST(ProductTemplate, OperandsOfTheCallArePackedInTheCall) { check("x86-64-v3", false); }

TEST(ProductTemplate, EachRemainderOfTheRowsIsOneBlockWhereTheseAreFew) {
  std::vector<std::string> steps;
  check("x86-64-v3", true, 48, &steps);
  EXPECT_NE(std::ranges::find(steps, "split(y, i, 6, 5, 4, 3, 2, 1)"), steps.end());
  // 42 columns have tails of their own.
  check("x86-64-v3", true, 42, &steps);
  EXPECT_NE(std::ranges::find(steps, "split(y, i, 6, 4, 2, 1)"), steps.end());
}

// Two vectors of 16 columns are four registers of AVX2, whose sums wait for one another.
TEST(ProductTemplate, OneRowHasAsManySumsAsHideTheirLatency) {
  for (const std::string_view level : {"x86-64-v3", "x86-64-v4"})
    EXPECT_EQ(choose_tile(*find_machine(level), 1, 512, 16, {.strided_rows = true}).vectors, 4) << level;
}

TEST(ProductTemplate, ARefusedStepEndsItWithTheReason) {
  TypeContext context;
  loop::Schedule schedule(context, must_parse(context, dense(42)));
  const ProductStages product{context.symbol("dot"), context.symbol("y"), context.symbol("x")};
  const Status status = schedule_product(context, schedule, product, *find_machine("x86-64-v3"), cheapest);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().str().find("%x is not read at 'j'"), std::string::npos) << status.error().str();
}

}  // namespace
}  // namespace tenon::compiler::schedules
