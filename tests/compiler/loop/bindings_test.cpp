// Loops bound to the blocks and threads of a GPU: phases, barriers, races, launches, and the default binding.
#include "compiler/loop/bindings.h"
#include "compiler/fuzz/random_loops.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "compiler/loop/evaluate.h"
#include "compiler/loop/schedule/bind.h"
#include "compiler/loop/schedule/merge.h"
#include "compiler/loop/schedule/schedule.h"
#include "compiler/loop/text.h"
#include "tests/compiler/loop/counted.h"
#include "tests/compiler/loop/must_parse.h"
#include "tests/rounds.h"

namespace tenon::compiler::loop {
namespace {

using runtime::Tensor;

// Rows reversed by way of shared memory, with a register for each thread.
constexpr std::string_view kReverse =
    R"(loop @reverse[n](%x: Tensor[(n, 8), i32]) -> (%y: Tensor[(n, 8), i32]) {
  for b in (n) block_x {
    alloc %s: Tensor[(8,), i32] in shared {
      alloc %r: Tensor[(8,), i32] in registers {
        for t in (8) thread_x {
          stage load(b in (n) at (b), t in (8) at (t)) {
            %s[t] = %x[b, t];
            %r[t] = %x[b, t] * i32(100);
          }
        }
        barrier;
        for t in (8) thread_x {
          stage store(b in (n) at (b), t in (8) at (t)) { %y[b, t] = %s[7 - t] + %r[t]; }
        }
      }
    }
  }
}
)";

std::string replaced(std::string_view from, std::string_view to, std::string text = std::string(kReverse)) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Expected<std::vector<Tensor>> run(TypeContext& context, const Function& function, const std::vector<Tensor>& params,
                                  ThreadOrder order = ThreadOrder::kForward) {
  EvaluateOptions options;
  options.threads = order;
  return evaluate(context, function, params, options);
}

constexpr ThreadOrder kOrders[] = {ThreadOrder::kForward, ThreadOrder::kBackward, ThreadOrder::kShuffled};

TEST(Bindings, ThreadsOfAPhaseRunInAnyOrder) {
  TypeContext context;
  const Function function = must_parse(context, kReverse);
  const std::vector<Tensor> params{counted({2, 8})};
  const auto expected = run(context, unbound(function), params);
  ASSERT_TRUE(expected) << expected.error().str();
  EXPECT_EQ((*expected)[0].data<int32_t>()[0], 7);
  for (const ThreadOrder order : kOrders) {
    const auto found = run(context, function, params, order);
    ASSERT_TRUE(found) << found.error().str();
    EXPECT_EQ(*found, *expected);
  }
  EXPECT_TRUE(is_bound(function));
  EXPECT_FALSE(is_bound(unbound(function)));
}

TEST(Bindings, AreReadBackAsTheyArePrinted) {
  TypeContext context;
  const Function function = must_parse(context, kReverse);
  const std::string text = print(context, function);
  EXPECT_NE(text.find("for b in (n) block_x {"), std::string::npos) << text;
  EXPECT_NE(text.find("in shared {"), std::string::npos) << text;
  EXPECT_NE(text.find("barrier;"), std::string::npos) << text;
  EXPECT_TRUE(equal(must_parse(context, text), function));
}

TEST(Bindings, AMissingBarrierIsARace) {
  TypeContext context;
  const Function function = must_parse(context, replaced("barrier;", ""));
  const auto found = run(context, function, {counted({2, 8})});
  ASSERT_FALSE(found);
  EXPECT_NE(
      found.error().str().find("race: thread (0, 0, 0) reads element 7 of %s, which thread (7, 0, 0) accesses too"),
      std::string::npos)
      << found.error().str();
  EXPECT_NE(found.error().help.find("by a barrier"), std::string::npos);
  EXPECT_TRUE(equal(with_barriers(context, function), must_parse(context, kReverse)));
}

TEST(Bindings, BlocksMustNotExchangeData) {
  TypeContext context;
  const Function function =
      must_parse(context, R"(loop @f(%x: Tensor[(4,), i32]) -> (%y: Tensor[(4,), i32], %z: Tensor[(4,), i32]) {
  for b in (4) block_x {
    for t in (1) thread_x { stage a(b in (4) at (b)) { %y[b] = %x[b]; } }
    barrier;
    for t in (1) thread_x { stage c(b in (4) at (b)) { %z[b] = %y[3 - b]; } }
  }
}
)");
  for (const ThreadOrder order : {ThreadOrder::kForward, ThreadOrder::kBackward}) {
    const auto found = run(context, function, {counted({4})}, order);
    ASSERT_FALSE(found);
    EXPECT_TRUE(found.error().what.find("read before it is written") != std::string::npos ||
                found.error().what.find("race: block") != std::string::npos)
        << found.error().str();
  }
  // Every thread of the second phase finds its element written, but by another block.
  const Function late =
      must_parse(context, R"(loop @f(%x: Tensor[(4,), i32]) -> (%y: Tensor[(4,), i32], %z: Tensor[(4,), i32]) {
  for b in (4) block_x {
    for t in (1) thread_x { stage a(b in (4) at (b)) { %y[b] = %x[b]; } }
    barrier;
    for t in (1) thread_x { stage c(b in (4) at (b)) { %z[b] = select(index(0) < index(b), %y[b - 1], i32(0)); } }
  }
}
)");
  const auto found = run(context, late, {counted({4})});
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().what.find("race: block (1, 0, 0) reads element 0 of %y, which block (0, 0, 0) accesses too"),
            std::string::npos)
      << found.error().str();
}

TEST(Bindings, AnIndexOutsideOfSharedMemoryIsAnError) {
  TypeContext context;
  const Function function = must_parse(context, replaced("%s[7 - t]", "%s[8 - t]"));
  const auto found = run(context, function, {counted({2, 8})});
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().what.find("is outside"), std::string::npos) << found.error().str();
}

TEST(Bindings, ADivergentBarrierIsRefusedStatically) {
  const std::pair<std::string, std::string> cases[] = {
      {replaced("barrier;\n        for t in (8) thread_x {", "for t in (8) thread_x { barrier;"),
       "a barrier is inside the loop 't' over threads"},
      {replaced("barrier;", "if (%x[0, 0] < i32(1)) { barrier; }"), "a barrier depends on data"},
      {replaced("barrier;", "let q in (8) = i64(%x[0, 0]) { barrier; }"), "a barrier depends on data"},
      {replaced("%s[t] = %x[b, t];", "%s[t] = %x[b, t]; barrier;"), "a barrier is inside"},
  };
  for (const auto& [text, message] : cases) {
    TypeContext context;
    const auto function = parse(context, text, "f.tn");
    ASSERT_FALSE(function) << text;
    EXPECT_NE(function.error().str().find(message), std::string::npos) << function.error().str();
  }
}

TEST(Bindings, LaunchesHaveBlocksThreadsAndSharedMemory) {
  TypeContext context;
  const Function function = must_parse(context, kReverse);
  const auto launches = launches_of(context, function);
  ASSERT_TRUE(launches) << launches.error().str();
  ASSERT_EQ(launches->size(), 1u);
  EXPECT_EQ(context.str((*launches)[0].grid[0]), "n");
  EXPECT_EQ((*launches)[0].grid[1].constant(), 1);
  EXPECT_EQ((*launches)[0].threads, (std::array<int64_t, 3>{8, 1, 1}));
  EXPECT_EQ((*launches)[0].shared_elements, 8);
}

TEST(Bindings, WhatNoLaunchSupportsIsRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {replaced("for b in (n) block_x", "for b in (n)"), "the loop 'b' is not bound to blocks"},
      {replaced("for t in (8) thread_x", "for t in (8)"), "a statement of a block is outside of every thread"},
      {replaced("for t in (8) thread_x", "for t in (8) block_y"), "'t' is bound to blocks inside a block"},
      {replaced("for t in (8) thread_x {", "for q in (1) thread_x { for t in (8) thread_x {",
                replaced("          }\n        }\n        barrier", "          } }\n        }\n        barrier")),
       "'t' is inside another one over thread_x"},
      {replaced("for t in (8) thread_x", "for t in (n) thread_x"), "'t' over threads has the extent n"},
      {replaced("for t in (8) thread_x", "for t in (2000) thread_x"), "has 2000 threads, at most 1024"},
      {replaced("in shared", "in stack"), "%s is allocated by a block, but neither shared nor in registers"},
      {replaced("%s: Tensor[(8,)", "%s: Tensor[(n + 8,)"), "%s is shared, but its size n + 8 is not a constant"},
      {replaced("%s: Tensor[(8,)", "%s: Tensor[(8, 4294967296, 4294967296)",
                replaced("%s[t]", "%s[t, 0, 0]", replaced("%s[7 - t]", "%s[7 - t, 0, 0]"))),
       "%s is shared, but has more than 2^63 elements"},
      {replaced("%r[t] =", "%r[7 - t] ="), "%r is in registers of a block, but 't' is none of its indices"},
      {replaced("+ %r[t]", "+ %r[7 - t]"), "a block of 8 x 1 x 1 threads has no whole warps of whole rows along x"},
      {replaced("  for b in (n) block_x {", "  for b in (n) block_x { for c in (1) block_x {",
                replaced("\n  }\n}\n", "\n  } }\n}\n")),
       "two nested loops are bound to block_x"},
  };
  for (const auto& [text, message] : cases) {
    TypeContext context;
    const Function function = must_parse(context, text);
    const auto launches = launches_of(context, function);
    ASSERT_FALSE(launches) << text;
    EXPECT_NE(launches.error().str().find(message), std::string::npos) << launches.error().str();
  }
}

TEST(Bindings, ALoopWithDependentIterationsIsNotBound) {
  TypeContext context;
  Schedule schedule(context, must_parse(context, R"(loop @sum[n](%x: Tensor[(n, 4), i32]) -> (%y: Tensor[(n,), i32]) {
  for i in (n) { for k in (4) { stage sum(i in (n) at (i), reduce k in (4) at (k)) { init { %y[i] = i32(0); } %y[i] = %y[i] + %x[i, k]; } } }
}
)"));
  const Status reduction = schedule.apply("mark(sum, k, thread_x)");
  ASSERT_FALSE(reduction);
  EXPECT_NE(reduction.error().what.find("'k' is a reduction axis"), std::string::npos) << reduction.error().str();
  const Status unknown = schedule.apply("mark(sum, i, thread_y)");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().what.find("'i' has n iterations, a block has at most 1024 threads"), std::string::npos)
      << unknown.error().str();
  EXPECT_TRUE(schedule.apply("mark(sum, i, block_x)"));
}

// Bound functions compute what the functions do, however they were scheduled before, and in every order of threads.
TEST(Bindings, RandomProgramsAndSchedulesAreBound) {
  constexpr auto kPrograms = static_cast<uint64_t>(rounds(1000));
  size_t launches = 0, threads = 0, barriers = 0, refused = 0, cut = 0;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    Random random(seed + 100000);
    TypeContext context;
    std::string text = random_program(random);
    const auto n = static_cast<int64_t>(1 + random.below(6));
    if (random.below(2) == 0) {  // a constant number of rows, of which blocks may have several
      text.replace(text.find("[n]"), 3, "");
      text = std::regex_replace(text, std::regex("\\bn\\b"), std::to_string(n));
    }
    const Function program = must_parse(context, text);
    const int64_t m = *program.buffer(program.params[1]).axes[0].extent.constant();
    std::vector<Tensor> params{Tensor(DType::kI32, {n, m}), Tensor(DType::kI32, {m, m})};
    for (Tensor& param : params)
      for (int32_t& value : param.data<int32_t>()) value = static_cast<int32_t>(random.below(2000)) - 1000;
    const auto expected = run(context, program, params);
    ASSERT_TRUE(expected) << expected.error().str() << text;
    Schedule schedule(context, program);
    for (size_t step = random.below(10); step > 0; --step) {
      for (const std::string& next : random_steps(context, schedule.function(), random)) (void)schedule.apply(next);
    }
    BindOptions options;
    options.threads = static_cast<int64_t>(1 + random.below(8));
    const MergeOptions several{.points = static_cast<int64_t>(1 + random.below(40)), .blocks = 1};
    const Function rows = merged(context, schedule.function(), several);
    cut += equal(rows, merged(context, schedule.function(), {.points = 1})) ? 0 : 1;
    const auto function = bound(context, random.below(2) == 0 ? schedule.function() : rows, options);
    if (!function) {
      EXPECT_NE(function.error().what.find("known at run time only"), std::string::npos) << function.error().str();
      ++refused;
      continue;
    }
    const std::string shown = "seed " + std::to_string(seed) + "\n" + text + print(context, *function);
    for (const ThreadOrder order : kOrders) {
      const auto found = run(context, *function, params, order);
      ASSERT_TRUE(found) << found.error().str() << "\n" << shown;
      ASSERT_EQ(*found, *expected) << shown;
    }
    const auto emulated = run(context, unbound(*function), params);
    ASSERT_TRUE(emulated) << emulated.error().str() << "\n" << shown;
    ASSERT_EQ(*emulated, *expected) << shown;
    if (seed % 8 == 0) {
      ASSERT_TRUE(equal(must_parse(context, print(context, *function)), *function)) << shown;
    }
    const auto of_function = launches_of(context, *function);
    ASSERT_TRUE(of_function) << of_function.error().str() << shown;
    for (const Launch& launch : *of_function) ++launches, threads += launch.threads[0] > 1;
    for_each_statement(function->body,
                       [&](const Stmt& stmt) { barriers += std::holds_alternative<Barrier>(stmt.form); });
  }
  EXPECT_GT(threads, launches / 4) << launches;
  EXPECT_GT(barriers, size_t{kSanitized ? 0 : 5});
  EXPECT_GT(cut, size_t{kSanitized ? 0 : 20}) << "blocks with several rows";
  EXPECT_LT(refused, static_cast<size_t>(kPrograms / 4));
}

}  // namespace
}  // namespace tenon::compiler::loop
