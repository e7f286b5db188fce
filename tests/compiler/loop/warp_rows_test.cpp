// Rows that neighbouring threads compute in registers, and what threads read of others' registers.
#include "compiler/loop/schedule/warp_rows.h"
#include "support/random.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/loop/bindings.h"
#include "compiler/loop/evaluate.h"
#include "compiler/loop/schedule/bind.h"
#include "compiler/loop/schedule/merge.h"
#include "compiler/loop/text.h"
#include "tests/compiler/loop/must_parse.h"
#include "tests/rounds.h"

namespace tenon::compiler::loop {
namespace {

using runtime::Tensor;

struct Rows {
  int64_t rows = 8, length = 64, parts = 16;
  std::string update = "%A + %B", init = "0";  // of %A by %B
  bool centered = true;                        // each element less its row's sum; else the sums
};

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// The sums of rows in partial sums, the tail of a row included.
std::string text_of(const Rows& rows) {
  const auto updated = [&](const std::string& to, const std::string& value) {
    return to + " = " + replaced(replaced(rows.update, "%A", to), "%B", value) + ";";
  };
  const int64_t whole = rows.length / rows.parts, tail = rows.length % rows.parts;
  std::string text = R"(loop @rows(%x: Tensor[($N, $L), i32]) -> (%y: Tensor[$R, i32]) {
  alloc %part: Tensor[($N, $P), i32] {
    for i in ($N) { for j in ($P) { for k in ($W) {
      stage part(i in ($N) at (i), j in ($P) at (j), reduce k in ($W) at (k)) {
        init { %part[i, j] = i32($I); }
        )" + updated("%part[i, j]", "%x[i, $P*k + j]") +
                     R"(
      }
    } } }
)";
  if (tail > 0) {
    text += R"(    for i in ($N) { for j in ($T) {
      stage tail(i in ($N) at (i), j in ($T) at (j)) { )" +
            updated("%part[i, j]", "%x[i, j + $B]") + " }\n    } }\n";
  }
  const std::string sum = rows.centered ? "%sum[i]" : "%y[i]";
  if (rows.centered) text += "    alloc %sum: Tensor[($N,), i32] {\n";
  text += R"(    for i in ($N) { for k in ($P) {
      stage sum(i in ($N) at (i), reduce k in ($P) at (k)) {
        init { )" +
          sum + " = i32($I); }\n        " + updated(sum, "%part[i, k]") + "\n      }\n    } }\n";
  if (rows.centered) {
    text += R"(    for i in ($N) { for j in ($L) {
      stage centered(i in ($N) at (i), j in ($L) at (j)) { %y[i, j] = %x[i, j] * i32(3) - %sum[i]; }
    } } }
)";
  }
  text += "  }\n}\n";
  for (const auto& [from, to] :
       {std::pair<std::string_view, std::string>("$N", std::to_string(rows.rows)),
        {"$R", rows.centered ? fmt::format("({}, {})", rows.rows, rows.length) : fmt::format("({},)", rows.rows)},
        {"$L", std::to_string(rows.length)},
        {"$P", std::to_string(rows.parts)},
        {"$W", std::to_string(whole)},
        {"$T", std::to_string(tail)},
        {"$B", std::to_string(whole * rows.parts)},
        {"$I", rows.init}})
    text = replaced(std::move(text), from, to);
  return text;
}

struct Counts {
  size_t barriers = 0, exchanged = 0;
  std::array<int64_t, 3> threads{};
};

// Compares the function in warps with the plain one, in all orders of threads; as a GPU gets it.
Counts check(const Rows& rows, const WarpRowOptions& options = {}, uint64_t seed = 0) {
  TypeContext context;
  const std::string text = text_of(rows);
  const Function function = must_parse(context, text), in_warps = with_warp_rows(context, function, options);
  const auto bound_rows = bound(context, merged(context, in_warps));
  EXPECT_TRUE(bound_rows) << bound_rows.error().str() << text;
  if (!bound_rows) return {};
  Random random(seed);
  Tensor x(DType::kI32, {rows.rows, rows.length});
  for (int32_t& value : x.data<int32_t>()) value = static_cast<int32_t>(random.below(2000)) - 1000;
  const std::vector<Tensor> params{x};
  const auto expected = evaluate(context, function, params);
  EXPECT_TRUE(expected) << expected.error().str() << text;
  const std::string shown = print(context, *bound_rows);
  for (const ThreadOrder order : {ThreadOrder::kForward, ThreadOrder::kBackward, ThreadOrder::kShuffled}) {
    EvaluateOptions in_order;
    in_order.threads = order;
    const auto found = evaluate(context, *bound_rows, params, in_order);
    EXPECT_TRUE(found) << found.error().str() << shown;
    EXPECT_TRUE(found && *found == *expected) << shown;
  }
  EXPECT_EQ(evaluate(context, unbound(*bound_rows), params).value(), *expected) << shown;
  EXPECT_TRUE(equal(must_parse(context, shown), *bound_rows)) << shown;
  const auto launches = launches_of(context, *bound_rows);
  EXPECT_TRUE(launches) << launches.error().str();
  Counts counts;
  for (const Launch& launch : *launches) counts.exchanged += launch.exchanged.size();
  counts.threads = launches->front().threads;
  for_each_statement(bound_rows->body,
                     [&](const Stmt& stmt) { counts.barriers += std::holds_alternative<Barrier>(stmt.form); });
  return counts;
}

TEST(WarpRows, RowsStayInRegistersWithoutBarriers) {
  const Counts counts = check({});
  EXPECT_EQ(counts.threads, (std::array<int64_t, 3>{16, 2, 1})) << "two rows of 16 threads are a warp";
  EXPECT_EQ(counts.barriers, 0u);
  EXPECT_EQ(counts.exchanged, 5u) << "partial sums, those of 8, 4 and 2, and the sum";
  EXPECT_EQ(check({.centered = false}).exchanged, 4u) << "thread 0 stores its own sum";
  EXPECT_EQ(check({.length = 320}).threads, (std::array<int64_t, 3>{32, 1, 1})) << "a long row has a warp";
  EXPECT_EQ(check({.rows = 64, .length = 320}, {.blocks = 8}).threads, (std::array<int64_t, 3>{32, 8, 1}));
  EXPECT_EQ(check({.length = 61}).barriers, 0u) << "a tail";
  EXPECT_EQ(check({.length = 320, .parts = 64}).barriers, 0u) << "two partial sums a thread";
}

TEST(WarpRows, OtherFunctionsStayAsTheyAre) {
  const auto is_unchanged = [](const std::string& text, const WarpRowOptions& options = {}) {
    TypeContext context;
    const Function function = must_parse(context, text);
    return equal(with_warp_rows(context, function, options), function);
  };
  EXPECT_FALSE(is_unchanged(text_of({})));
  EXPECT_TRUE(is_unchanged(text_of({.rows = 7}))) << "half a warp";
  EXPECT_FALSE(is_unchanged(text_of({.rows = 7, .length = 320})));
  EXPECT_TRUE(is_unchanged(text_of({.parts = 8}))) << "few partial sums";
  EXPECT_TRUE(is_unchanged(text_of({.length = 1024}), {.registers = 2})) << "more partial sums than registers";
  EXPECT_TRUE(is_unchanged(text_of({.length = 4096}))) << "more elements than threads of a block";
  EXPECT_TRUE(is_unchanged(replaced(text_of({}), "- %sum[i]", "- %sum[7 - i]"))) << "another row's sum";
}

TEST(WarpRows, RandomRowsHaveTheirSums) {
  const std::pair<const char*, const char*> updates[] = {{"%A + %B", "0"},
                                                         {"%A * %B", "1"},
                                                         {"max(%A, %B)", "-2147483648"},
                                                         {"select(%A < %B, %B, %A)", "-2147483648"},
                                                         {"select(%B < %A, %B, %A)", "2147483647"},
                                                         {"bit_xor(%A, %B)", "0"}};
  size_t in_warps = 0;
  const auto programs = static_cast<uint64_t>(rounds(150));
  for (uint64_t seed = 0; seed < programs; ++seed) {
    Random random(seed);
    Rows rows{.rows = static_cast<int64_t>(1 + random.below(40)),
              .length = static_cast<int64_t>(32 + random.below(300))};
    rows.parts = random.below(3) == 0 && rows.length >= 64 ? 64 : 16;
    std::tie(rows.update, rows.init) = updates[random.below(std::size(updates))];
    rows.centered = random.below(2) == 0;
    const Counts counts = check(rows, {.blocks = static_cast<int64_t>(1 + random.below(20))}, seed);
    in_warps += counts.barriers == 0 && counts.exchanged > 0;
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(in_warps, programs / 3) << "the others have an odd number of short rows";
}

// --- Registers of other threads ---

// Each thread adds the register of its neighbour at a distance of 8.
constexpr std::string_view kExchange =
    R"(loop @exchange(%x: Tensor[(4, 2, 16), i32]) -> (%y: Tensor[(4, 2, 16), i32]) {
  for b in (4) block_x {
    alloc %r: Tensor[(2, 16), i32] in registers {
      for t in (2) thread_y { for u in (16) thread_x {
        stage load(b in (4) at (b), t in (2) at (t), u in (16) at (u)) { %r[t, u] = %x[b, t, u]; }
      } }
      for t in (2) thread_y { for u in (16) thread_x {
        stage add(b in (4) at (b), t in (2) at (t), u in (16) at (u)) { %y[b, t, u] = %r[t, u] + %r[t, (u + 8) % 16]; }
      } }
    }
  }
}
)";

TEST(WarpRows, ThreadsReadRegistersOfTheirWarp) {
  TypeContext context;
  const Function function = must_parse(context, kExchange);
  const auto launches = launches_of(context, function);
  ASSERT_TRUE(launches) << launches.error().str();
  ASSERT_EQ(launches->front().exchanged.size(), 1u);
  EXPECT_EQ(launches->front().exchanged.begin()->second, 1u) << "the axis of the thread along x";
  Tensor x(DType::kI32, {4, 2, 16});
  for (size_t i = 0; i < 128; ++i) x.data<int32_t>()[i] = static_cast<int32_t>(i * i);
  const std::vector<Tensor> params{x};
  const auto found = evaluate(context, function, params);
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ((*found)[0].data<int32_t>()[3], 3 * 3 + 11 * 11);
  EXPECT_EQ(evaluate(context, unbound(function), params).value(), *found);
}

const std::string kWritesAgain =
    "stage again(b in (4) at (b), t in (2) at (t), u in (16) at (u)) { %r[t, u] = %x[b, t, u]; }\n        stage add";

TEST(WarpRows, WhatAWarpCannotExchangeIsRefused) {
  const std::string text(kExchange);
  const std::string last = "for t in (2) thread_y { for u in (16) thread_x {\n        stage add";
  const std::pair<std::string, std::string> cases[] = {
      {replaced(text, "%r[t, (u + 8) % 16]", "%r[1 - t, u]"),
       "%r is in registers of a block, but is read from a thread "
       "of another warp"},
      {replaced(replaced(text, "%r[t, u] = %x[b, t, u];", "%r[t, u, 0] = %x[b, t, u]; %r[t, u, 1] = %x[b, t, u];"),
                "%r[t, u] + %r[t, (u + 8) % 16]", "%r[t, u, 0] + %r[t, (u + 8) % 16, u % 2]"),
       "%r is in registers, and read from other threads, each at another index u % 2"},
      {replaced(text, "(2)", "(3)"), "a block of 16 x 3 x 1 threads has no whole warps of whole rows along x"},
      {replaced(text, "(16)", "(24)"), "a block of 24 x 2 x 1 threads has no whole warps of whole rows along x"},
      {replaced(text, "stage add", kWritesAgain), "in the nest that writes it"},
      {replaced(text, last, replaced(last, "(16)", "(8)")), "in a nest that some threads of the block skip"},
      {replaced(replaced(text, "stage add", "if (%x[0, 0, 0] < i32(1)) { stage add"), "% 16]; }\n", "% 16]; } }\n"),
       "where threads may not execute the same statements"},
  };
  for (const auto& [changed, message] : cases) {
    TypeContext context;
    std::string adjusted = changed;  // sizes of the tensors that the loops cover
    if (changed.find("u, 1]") != std::string::npos)
      adjusted = replaced(adjusted, "%r: Tensor[(2, 16)", "%r: Tensor[(2, 16, 2)");
    if (changed.find("(24)") != std::string::npos) adjusted = replaced(adjusted, "2, 16), i32", "2, 24), i32");
    if (changed.find("(3)") != std::string::npos)
      adjusted = replaced(replaced(adjusted, "4, 2, 16", "4, 3, 16"), "(2, 16)", "(3, 16)");
    const Function function = must_parse(context, adjusted);
    const auto launches = launches_of(context, function);
    ASSERT_FALSE(launches) << adjusted;
    EXPECT_NE(launches.error().str().find(message), std::string::npos) << launches.error().str();
  }
}

TEST(WarpRows, TheEvaluatorRefusesRegistersOfOtherWarpsAndOfTheSameNest) {
  const std::string text(kExchange);
  const std::pair<std::string, std::string> cases[] = {
      {replaced(text, "%r[t, (u + 8) % 16]", "%r[1 - t, u]"), "threads of different y or z are in different warps"},
      {replaced(text, "stage add", kWritesAgain), "race: thread"},
  };
  for (const auto& [changed, message] : cases) {
    TypeContext context;
    const std::vector<Tensor> params{Tensor(DType::kI32, {4, 2, 16})};
    const auto found = evaluate(context, must_parse(context, changed), params);
    ASSERT_FALSE(found) << changed;
    EXPECT_NE(found.error().str().find(message), std::string::npos) << found.error().str();
  }
}

}  // namespace
}  // namespace tenon::compiler::loop
