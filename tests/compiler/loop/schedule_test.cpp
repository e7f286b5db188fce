// Schedules preserve a function's results, or are refused with the reason.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "compiler/fuzz/random_loops.h"
#include "compiler/loop/evaluate.h"
#include "compiler/loop/schedule/schedule.h"
#include "compiler/loop/text.h"
#include "compiler/loop/tree.h"
#include "tests/compiler/loop/must_parse.h"
#include "tests/rounds.h"

namespace tenon::compiler::loop {
namespace {

using runtime::Tensor;

// d = relu(a * b + 1), with an intermediate buffer.
constexpr std::string_view kDense =
    R"(loop @dense[n](%a: Tensor[(n, 6), i32], %b: Tensor[(6, 4), i32]) -> (%d: Tensor[(n, 4), i32]) {
  alloc %c: Tensor[(n, 4), i32] {
    for i in (n) {
      for j in (4) {
        for k in (6) {
          stage dot(i in (n) at (i), j in (4) at (j), reduce k in (6) at (k)) {
            init { %c[i, j] = i32(1); }
            %c[i, j] = %c[i, j] + %a[i, k] * %b[k, j];
          }
        }
      }
    }
    for i in (n) {
      for j in (4) {
        stage relu(i in (n) at (i), j in (4) at (j)) { %d[i, j] = max(%c[i, j], i32(0)); }
      }
    }
  }
}
)";

// A sum over a window of three of a doubled input, and a running sum of it.
constexpr std::string_view kWindow =
    R"(loop @window[n](%x: Tensor[(n + 2,), i32]) -> (%y: Tensor[(n,), i32], %z: Tensor[(n + 1,), i32]) {
  alloc %t: Tensor[(n + 2,), i32] {
    for i in (n + 2) {
      stage twice(i in (n + 2) at (i)) { %t[i] = %x[i] * i32(2); }
    }
    for i in (n) {
      for r in (3) {
        stage sum(i in (n) at (i), reduce r in (3) at (r)) {
          init { %y[i] = i32(0); }
          %y[i] = %y[i] + %t[i + r];
        }
      }
    }
  }
  stage zero() { %z[0] = i32(0); }
  for i in (n) {
    stage running(scan i in (n) at (i)) { %z[i + 1] = %z[i] + %y[i]; }
  }
}
)";

// Two stages in one loop, of which the second reads an element that the first one wrote in the previous iteration.
constexpr std::string_view kNeighbours =
    R"(loop @late[n](%x: Tensor[(n, 2), i32]) -> (%t: Tensor[(n, 2), i32], %y: Tensor[(n, 2), i32]) {
  for i in (n) {
    for j in (2) {
      stage now(i in (n) at (i), j in (2) at (j)) { %t[i, j] = %x[i, j] + i32(1); }
      stage late(i in (n) at (i), j in (2) at (j)) { %y[i, j] = select(index(0) < index(i), %t[i - 1, j], i32(0)); }
    }
  }
}
)";

TEST(Schedule, RecordedStepsReproduceTheSchedule) {
  TypeContext context;
  Schedule schedule(context, must_parse(context, kDense));
  for (std::string_view step : {"split(dot, i, 4)", "split(dot, j, 2)", "reorder(dot, i0, j0, k, i1, j1)",
                                "mark(dot, j1, vector)", "mark(dot, i1, unroll)", "split_init(dot, k)",
                                "mark(dot, i0, parallel)", "cache_read(dot, b)", "cache_write(relu)"}) {
    const Status status = schedule.apply(step);
    EXPECT_TRUE(status) << status.error().str() << print(context, schedule.function());
  }
  Schedule again(context, must_parse(context, kDense));
  for (const std::string& step : schedule.steps()) ASSERT_TRUE(again.apply(step));
  EXPECT_TRUE(equal(schedule.function(), again.function()));
  const std::string text = print(context, schedule.function());
  EXPECT_NE(text.find(R"(
          for k in (6) {
            for i1 in (4) unroll {
              for j1 in (2) vector {
                stage dot(i in (n) at (4*i0 + i1), j in (4) at (2*j0 + j1), reduce k in (6) at (k)) where (4*i0 + i1) below (n) {
                  %c[i, j] = %c[i, j] + %a[i, k] * %b_dot[k, j];
)"),
            std::string::npos)
      << text;
}

// The factor of the split is arbitrary: the three mixed-radix digits of an index become o + (32 * o + i) // 224 and the
// corresponding remainders.
TEST(Schedule, VectorizesLoopsThatWereFusedAndSplit) {
  constexpr std::string_view kMaps = R"(loop @maps(%x: Tensor[(8, 14, 16), i32]) -> (%y: Tensor[(8, 14, 16), i32]) {
  for i in (8) {
    for j in (14) {
      for k in (16) {
        stage more(i in (8) at (i), j in (14) at (j), k in (16) at (k)) { %y[i, j, k] = %x[i, j, k] + i32(1); }
      }
    }
  }
}
)";
  TypeContext context;
  Schedule schedule(context, must_parse(context, kMaps));
  for (std::string_view step : {"fuse(more, i, j)", "fuse(more, i_j, k)", "split(more, i_j_k, 256)",
                                "mark(more, i_j_k1, vector)", "mark(more, i_j_k0, parallel)"}) {
    const Status status = schedule.apply(step);
    EXPECT_TRUE(status) << step << status.error().str() << print(context, schedule.function());
  }
  Tensor x(DType::kI32, {8, 14, 16});
  std::iota(x.data<int32_t>().begin(), x.data<int32_t>().end(), 0);
  const auto found = evaluate(context, schedule.function(), std::vector{x});
  ASSERT_TRUE(found) << found.error().str();
  const std::span<const int32_t> y = found->front().data<int32_t>();
  for (size_t i = 0; i < 1792; ++i) EXPECT_EQ(y[i], static_cast<int32_t>(i) + 1);
}

TEST(Schedule, ComputeAtComputesTheElementsThatOneIterationReads) {
  TypeContext context;
  Schedule schedule(context, must_parse(context, kWindow));
  ASSERT_TRUE(schedule.apply("split(sum, i, 4)"));
  const Status status = schedule.apply("compute_at(twice, sum, i0)");
  ASSERT_TRUE(status) << status.error().str();
  const std::string text = print(context, schedule.function());
  // Six elements for four sums.
  EXPECT_NE(text.find("for twice_i in (6)"), std::string::npos) << text;
}

// Loops around both stages, as those of a scan's steps, stay as they are.
TEST(Schedule, ComputeAtKeepsCommonLoops) {
  constexpr std::string_view kSteps = R"(loop @steps(%x: Tensor[(5, 4), i32]) -> (%y: Tensor[(5, 4), i32]) {
  for t in (5) {
    alloc %s: Tensor[(4), i32] {
      for j in (4) {
        stage s(t in (5) at (t), j in (4) at (j)) { %s[j] = %x[t, j] + i32(1); }
      }
      for j in (4) {
        stage y(t in (5) at (t), j in (4) at (j)) { %y[t, j] = %s[j] * i32(3); }
      }
    }
  }
}
)";
  TypeContext context;
  const Function before = must_parse(context, kSteps);
  Schedule schedule(context, before);
  for (const std::string_view step : {"split(y, j, 2)", "compute_at(s, y, j0)", "store_at(y, s, j0, registers)"}) {
    const Status status = schedule.apply(step);
    ASSERT_TRUE(status) << step << status.error().str();
  }
  const std::string text = print(context, schedule.function());
  EXPECT_NE(text.find("alloc %s: Tensor[(2,), i32] in registers"), std::string::npos) << text;
  EXPECT_EQ(text.find("s_t"), std::string::npos) << text;
  Tensor x(DType::kI32, {5, 4});
  std::iota(x.data<int32_t>().begin(), x.data<int32_t>().end(), 0);
  EXPECT_EQ(*evaluate(context, schedule.function(), std::vector{x}), *evaluate(context, before, std::vector{x}))
      << text;
}

TEST(Schedule, RefusesWithTheReason) {
  struct Case {
    std::string_view program, before, step, message;
  };
  const Case cases[] = {
      {kDense, "", "split(dot, q, 2)", "is in no loop 'q'"},
      {kDense, "", "split(dot, i, 0)", "the factor is 0"},
      {kDense, "", "split(dot, i, x)", "the factor must be an integer, got 'x'"},
      {kDense, "", "split(dot, i)", "'split' requires a stage, a loop and factors"},
      {kDense, "", "tile(dot, i)", "there is no primitive 'tile'"},
      {kDense, "", "split", "a step must be a name with arguments"},
      {kDense, "", "split(mul, i, 2)", "there is no stage 'mul'"},
      {kDense, "mark(dot, i, parallel)", "split(dot, i, 2)", "has a loop kind already"},
      {kDense, "", "fuse(dot, i, k)", "the loop 'k' is not the only statement in 'i'"},
      {kDense, "", "reorder(dot, i)", "fewer than two loops"},
      {kDense, "", "reorder(dot, i, i)", "is named twice"},
      {kDense, "", "mark(dot, k, parallel)", "'k' is a reduction axis"},
      {kDense, "", "mark(dot, i, vector)", "is not a constant but n"},
      {kDense, "", "mark(dot, j, vector)", "is not the innermost loop"},
      {kDense, "", "mark(dot, j, fast)", "'fast' is not a loop kind"},
      {kDense, "", "inline(dot)", "is more than one assignment"},
      {kDense, "", "inline(relu)", "%d is a result of the function"},
      {kDense, "", "split_init(relu, i)", "has no init"},
      {kDense, "reorder(dot, k, i)", "split_init(dot, i)", "belongs to the reduction"},
      {kDense, "", "compute_at(relu, dot, i)", "is a result"},
      {kDense, "", "compute_at(dot, relu, q)", "is in no loop 'q'"},
      {kDense, "", "cache_read(relu, a)", "reads no buffer %a"},
      {kWindow, "", "mark(running, i, parallel)", "'i' is a scan axis"},
      {kWindow, "", "cache_write(running)", "'i' is a scan axis"},
      {kWindow, "", "compute_at(twice, running, i)", "do not follow each other"},
      {kWindow, "compute_at(twice, sum, i)", "mark(sum, i, parallel)",
       "several iterations write the same elements of %t"},
      {kNeighbours, "", "mark(late, i, parallel)", "may read elements of %t that another one writes"},
      {kNeighbours, "", "reorder(late, i, j)", "the loops contain several stages"},
  };
  for (const Case& refusal : cases) {
    TypeContext context;
    Schedule schedule(context, must_parse(context, refusal.program));
    if (!refusal.before.empty()) {
      const Status before = schedule.apply(refusal.before);
      ASSERT_TRUE(before) << before.error().str();
    }
    const std::string text = print(context, schedule.function());
    const Status status = schedule.apply(refusal.step);
    ASSERT_FALSE(status) << refusal.step;
    EXPECT_NE(status.error().str().find(refusal.message), std::string::npos) << status.error().str();
    EXPECT_EQ(print(context, schedule.function()), text);
  }
}

// --- Random programs and schedules ---

// The iterations of parallel loops in reverse order, on which the results must not depend.
Function reversed_parallel_loops(TypeContext& context, Function function) {
  for_each_statement(function.body, [&](Stmt& stmt) {
    auto* loop = std::get_if<For>(&stmt.form);
    if (!loop || (loop->kind != LoopKind::kParallel && loop->kind != LoopKind::kVectorized)) return;
    const Dim mirrored = context.subtract(context.subtract(loop->extent, context.dim(1)), context.dim(loop->var));
    for (Stmt& inner : loop->body) substitute(context, function, inner, {{loop->var, mirrored}});
  });
  return function;
}

// How often the steps of each primitive were accepted and refused.
using StepCounts = std::map<std::string, std::pair<int, int>>;

// A program under random steps has the results of the plain one, also with the parallel loops backwards, and its text
// is read as the same function.
void check_random_steps(TypeContext& context, const std::string& text, const std::vector<Tensor>& params,
                        Random& random, StepCounts& counts) {
  const Function program = must_parse(context, text);
  const auto expected = evaluate(context, program, params);
  ASSERT_TRUE(expected) << expected.error().str() << text;
  Schedule schedule(context, program);
  for (int step = 0; step < 12; ++step) {
    for (const std::string& step_text : random_steps(context, schedule.function(), random)) {
      const Status status = schedule.apply(step_text);
      auto& [accepted, refused] = counts[step_text.substr(0, step_text.find('('))];
      ++(status ? accepted : refused);
      EXPECT_TRUE(status || !status.error().what.empty()) << step_text;
    }
  }
  std::string shown = text;
  for (const std::string& step : schedule.steps()) shown += step + "\n";
  shown += print(context, schedule.function());
  const auto scheduled = evaluate(context, schedule.function(), params);
  ASSERT_TRUE(scheduled) << scheduled.error().str() << "\n" << shown;
  ASSERT_EQ(*scheduled, *expected) << shown;
  const auto reversed = evaluate(context, reversed_parallel_loops(context, schedule.function()), params);
  ASSERT_TRUE(reversed) << reversed.error().str() << "\n" << shown;
  ASSERT_EQ(*reversed, *expected) << shown;
  const auto read = parse(context, print(context, schedule.function()), "again.tn");
  ASSERT_TRUE(read) << read.error().str() << shown;
  ASSERT_TRUE(equal(*read, schedule.function())) << shown;
}

TEST(Schedule, RandomSchedulesPreserveTheResultsOfRandomPrograms) {
  constexpr auto kPrograms = static_cast<uint64_t>(rounds(2000));
  StepCounts counts;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    TypeContext context;
    const std::string text = random_program(random);
    const auto n = static_cast<int64_t>(1 + random.below(6));
    const Function program = must_parse(context, text);
    const int64_t m = *program.buffer(program.params[1]).axes[0].extent.constant();
    std::vector<Tensor> params{Tensor(DType::kI32, {n, m}), Tensor(DType::kI32, {m, m})};
    for (Tensor& param : params)
      for (int32_t& value : param.data<int32_t>()) value = static_cast<int32_t>(random.below(2000)) - 1000;
    ASSERT_NO_FATAL_FAILURE(check_random_steps(context, text, params, random, counts));
  }
  // Each primitive is accepted often enough.
  EXPECT_EQ(counts.size(), 25u);
  counts.erase("remap");  // all iterations of these programs have equal work
  for (const auto& [primitive, count] : counts)
    EXPECT_GT(count.first, kSanitized ? 0 : 20) << primitive << " refused " << count.second;
}

TEST(Schedule, RandomSchedulesPreserveTheResultsOfRaggedPrograms) {
  constexpr auto kPrograms = static_cast<uint64_t>(rounds(2000));
  StepCounts counts;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    TypeContext context;
    const RaggedProgram program = random_ragged_program(random);
    ASSERT_NO_FATAL_FAILURE(check_random_steps(context, program.text, program.params, random, counts));
  }
  // These require windows along instances, copies that run ahead, and the instruction of other programs.
  for (const std::string_view rare : {"fold_storage", "pipeline", "tensorize"}) counts.erase(std::string(rare));
  for (const auto& [primitive, count] : counts)
    EXPECT_GT(count.first, rounds(5)) << primitive << " refused " << count.second;
}

}  // namespace
}  // namespace tenon::compiler::loop
