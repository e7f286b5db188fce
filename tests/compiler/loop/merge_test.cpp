// Nests that become one, and those that must not.
#include "compiler/loop/schedule/merge.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/loop/bindings.h"
#include "compiler/loop/evaluate.h"
#include "compiler/loop/schedule/bind.h"
#include "compiler/loop/schedule/schedule.h"
#include "compiler/loop/text.h"
#include "compiler/loop/tree.h"
#include "tests/compiler/loop/must_parse.h"

namespace tenon::compiler::loop {
namespace {

using runtime::Tensor;

// The sums of rows, and each element less its row's; `row` and `columns` are parts of the second nest.
std::string centered(const std::string& row, const std::string& dims = "[n]", const std::string& columns = "4") {
  std::string text = R"(loop @centered$D(%x: Tensor[(n, $C), i32]) -> (%y: Tensor[(n, $C), i32]) {
  alloc %sum: Tensor[(n + 1,), i32] {
    for i in (n) { for k in ($C) {
      stage add(i in (n) at (i), reduce k in ($C) at (k)) {
        init { %sum[i] = i32(0); }
        %sum[i] = %sum[i] + %x[i, k];
      }
    } }
    alloc %twice: Tensor[(n, $C), i32] {
      for i in (n) { for j in ($C) {
        stage double(i in (n) at (i), j in ($C) at (j)) { %twice[i, j] = %x[i, j] * i32(2); }
      } }
      for row in (n) { for j in ($C) {
        stage store(i in (n) at (row), j in ($C) at (j)) { %y[i, j] = %twice[i, j] - %sum[$R]; }
      } }
    }
  }
}
)";
  for (const auto& [from, to] : {std::pair<std::string, std::string>("$D", dims), {"$C", columns}, {"$R", row}})
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from)) text.replace(at, 2, to);
  return text;
}

size_t nests(const Function& function) {
  const Body* body = &function.body;
  while (body->size() == 1 && std::holds_alternative<Alloc>(body->front().form))
    body = &std::get<Alloc>(body->front().form).body;
  return body->size();
}

TEST(Merge, RowsBecomeOneNestWithItsOwnBuffers) {
  TypeContext context;
  const Function function = must_parse(context, centered("i")), merged_rows = merged(context, function);
  EXPECT_EQ(nests(merged_rows), 1u) << print(context, merged_rows);
  EXPECT_FALSE(std::holds_alternative<Alloc>(merged_rows.body.front().form)) << print(context, merged_rows);
  const auto bound_rows = bound(context, merged_rows);
  ASSERT_TRUE(bound_rows) << bound_rows.error().str();
  EXPECT_EQ(launches_of(context, *bound_rows)->size(), 1u);
  Tensor x(DType::kI32, {3, 4});
  for (size_t i = 0; i < 12; ++i) x.data<int32_t>()[i] = static_cast<int32_t>(i * i);
  const std::vector<Tensor> params{x};
  EXPECT_EQ(evaluate(context, merged_rows, params).value(), evaluate(context, function, params).value());
  EXPECT_EQ(evaluate(context, *bound_rows, params).value(), evaluate(context, function, params).value());
}

// The points of each of a block's nests are its threads, as many as there are, in equal steps.
TEST(Merge, EachNestOfABlockHasItsThreads) {
  for (const auto& [columns, steps] : {std::pair<std::string, std::string>("40", "for j in (40) thread_x"),
                                       {"384", "for j1 in (192) thread_x"},
                                       {"331", "for j1 in (256) thread_x"}}) {
    TypeContext context;
    const Function function = must_parse(context, centered("i", "[n]", columns));
    Schedule schedule(context, merged(context, function));
    ASSERT_TRUE(schedule.apply("mark(double, j, vector)"));  // rows are blocks where one has lanes
    const auto bound_rows = bound(context, schedule.function());
    ASSERT_TRUE(bound_rows) << bound_rows.error().str();
    const std::string text = print(context, *bound_rows);
    EXPECT_NE(text.find(steps), std::string::npos) << text;
    Tensor x(DType::kI32, {2, std::stoi(columns)});
    for (int64_t i = 0; i < x.size(); ++i) x.data<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i * i % 97);
    const std::vector<Tensor> params{x};
    EXPECT_EQ(evaluate(context, *bound_rows, params).value(), evaluate(context, function, params).value());
  }
}

// Short rows: a block has several of them, so that the stage with a point a row has threads too. Rows are not split
// where few blocks would remain, or where their number is not constant.
TEST(Merge, ABlockHasSeveralShortRows) {
  const auto rows_of_block = [](const std::string& rows, const MergeOptions& options) -> int64_t {
    TypeContext context;
    std::string text = centered("i");
    for (size_t at = text.find("[n]"); at != std::string::npos; at = text.find("[n]")) text.replace(at, 3, "");
    for (const auto& [from, to] :
         {std::pair<std::string, std::string>("(n,", "(" + rows + ","), {"(n)", "(" + rows + ")"}, {"n + 1", rows}})
      for (size_t at = text.find(from); at != std::string::npos; at = text.find(from))
        text.replace(at, from.size(), to);
    const Function function = must_parse(context, text), merged_rows = merged(context, function, options);
    EXPECT_EQ(nests(merged_rows), 1u) << print(context, merged_rows);
    Schedule schedule(context, merged_rows);
    EXPECT_TRUE(schedule.apply("mark(double, j, vector)"));
    const auto bound_rows = bound(context, schedule.function());
    EXPECT_TRUE(bound_rows) << bound_rows.error().str();
    const auto launches = launches_of(context, *bound_rows);
    EXPECT_EQ(launches->size(), 1u);
    Tensor x(DType::kI32, {std::stoll(rows), 4});
    for (size_t i = 0; i < x.data<int32_t>().size(); ++i) x.data<int32_t>()[i] = static_cast<int32_t>(i * i % 1009);
    const std::vector<Tensor> params{x};
    EXPECT_EQ(evaluate(context, merged_rows, params).value(), evaluate(context, function, params).value());
    EXPECT_EQ(evaluate(context, *bound_rows, params).value(), evaluate(context, function, params).value());
    return std::stoll(rows) / *launches->front().grid[0].constant();
  };
  EXPECT_EQ(rows_of_block("96", {.points = 64, .blocks = 4}), 16);
  EXPECT_EQ(rows_of_block("90", {.points = 64, .blocks = 4}), 15) << "a divisor of the number";
  EXPECT_EQ(rows_of_block("96", {.points = 64, .blocks = 40}), 2);
  EXPECT_EQ(rows_of_block("97", {.points = 64, .blocks = 4}), 1);
  EXPECT_EQ(rows_of_block("96", {}), 1);
}

TEST(Merge, NestsThatNeedOtherIterationsStaySeparate) {
  TypeContext context;
  const auto count = [&](const std::string& text, MergeOptions options = {}) {
    return nests(merged(context, must_parse(context, text), options));
  };
  EXPECT_EQ(count(centered("i")), 1u);
  EXPECT_EQ(count(centered("n - 1 - i")), 2u) << "the sum of another row";
  EXPECT_EQ(count(centered("i", "[n, m]", "m")), 2u) << "as many columns as the call says";
  EXPECT_EQ(count(centered("i"), {.threads = 3}), 2u) << "a row has more columns than a block threads";
  std::string parallel = centered("i");
  parallel.replace(parallel.find("row in (n)"), 10, "row in (n) parallel");
  EXPECT_EQ(count(parallel), 2u);
}

TEST(Merge, LargeBuffersStayInMemory) {
  TypeContext context;
  const Function function = must_parse(context, centered("i"));
  const Function merged_rows = merged(context, function, {.buffer_bytes = 8});
  EXPECT_EQ(nests(merged_rows), 1u);
  const auto* alloc = std::get_if<Alloc>(&merged_rows.body.front().form);
  ASSERT_TRUE(alloc) << print(context, merged_rows);
  EXPECT_EQ(context.name(merged_rows.buffer(alloc->buffer).name), "twice");
}

TEST(Merge, ASumAddsUpInAnElementOfItsLoop) {
  TypeContext context;
  const Function function = must_parse(context, R"(loop @sums[n](%x: Tensor[(n, 4), i32]) -> (%y: Tensor[(1, 4), i32]) {
  for r in (1) { for j in (4) { for k in (n) {
    stage add(r in (1) at (r), j in (4) at (j), reduce k in (n) at (k)) {
      init { %y[r, j] = i32(0); }
      %y[r, j] = %y[r, j] + %x[k, j];
    }
  } } }
}
)");
  const Function summed = merged(context, function);
  const std::string text = print(context, summed);
  EXPECT_NE(text.find("alloc %add_cache: Tensor[(1, 1), i32]"), std::string::npos) << text;
  EXPECT_NE(text.find("%add_cache[0, 0] = %add_cache[0, 0] + %x[k, j]"), std::string::npos) << text;
  const auto bound_sums = bound(context, summed);
  ASSERT_TRUE(bound_sums) << bound_sums.error().str();
  Tensor x(DType::kI32, {3, 4});
  for (size_t i = 0; i < 12; ++i) x.data<int32_t>()[i] = static_cast<int32_t>(i * i);
  const std::vector<Tensor> params{x};
  EXPECT_EQ(evaluate(context, *bound_sums, params).value(), evaluate(context, function, params).value());
}

}  // namespace
}  // namespace tenon::compiler::loop
