// Asynchronous copies to shared memory: what is in flight, and the step that makes stages run ahead.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "compiler/loop/bindings.h"
#include "compiler/loop/evaluate.h"
#include "compiler/loop/schedule/schedule.h"
#include "compiler/loop/text.h"
#include "tests/compiler/loop/counted.h"
#include "tests/compiler/loop/must_parse.h"

namespace tenon::compiler::loop {
namespace {

using runtime::Tensor;

// Each thread reads what another thread has copied.
constexpr std::string_view kAsyncReverse =
    R"(loop @reverse[n](%x: Tensor[(n, 8), i32]) -> (%y: Tensor[(n, 8), i32]) {
  for b in (n) block_x {
    alloc %s: Tensor[(8,), i32] in shared {
      for t in (8) thread_x {
        stage load(b in (n) at (b), t in (8) at (t)) async {
          %s[t] = %x[b, t];
        }
      }
      commit;
      wait(0);
      barrier;
      for t in (8) thread_x {
        stage store(b in (n) at (b), t in (8) at (t)) {
          %y[b, t] = %s[-t + 7];
        }
      }
    }
  }
}
)";

std::string with_replaced(const std::string& text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return std::string(text).replace(at, from.size(), to);
}

TEST(AsyncCopies, ArriveAtTheWaitOfTheirGroup) {
  TypeContext context;
  const Function function = must_parse(context, kAsyncReverse);
  EXPECT_EQ(print(context, function), kAsyncReverse);
  const auto found = evaluate(context, function, std::vector{counted({2, 8})}, {}),
             plain = evaluate(context, unbound(function), std::vector{counted({2, 8})}, {});
  ASSERT_TRUE(found) << found.error().str();
  ASSERT_TRUE(plain) << plain.error().str();
  EXPECT_EQ((*found)[0].data<int32_t>()[1], 6);
  EXPECT_EQ(*found, *plain);
}

TEST(AsyncCopies, AreNotAccessedInFlight) {
  const std::string text(kAsyncReverse), wait = "      wait(0);\n", commit = "      commit;\n",
                                         barrier = "      barrier;\n";
  const std::string overwrite =
      "      for t in (8) thread_x {\n        stage over(t in (8) at (t)) {\n          %s[t] = i32(1);\n        }\n    "
      "  "
      "}\n";
  const std::vector<std::array<std::string, 2>> cases = {
      {with_replaced(text, wait, ""), "is read while it is in flight"},
      {with_replaced(text, wait, "      wait(1);\n"), "is read while it is in flight"},
      {with_replaced(text, commit, ""), "is read while it is in flight"},
      {with_replaced(text, commit + wait, wait + commit), "is read while it is in flight"},
      {with_replaced(text, barrier, ""), "race: thread"},
      {with_replaced(text, commit, commit + barrier + overwrite), "is written while it is in flight"},
      {with_replaced(with_replaced(text, wait, ""), "%s[-t + 7]", "i32(7)"), "is in flight where the buffer ends"},
  };
  for (const auto& [planted, message] : cases) {
    TypeContext context;
    const auto found = evaluate(context, must_parse(context, planted), std::vector{counted({2, 8})}, {});
    ASSERT_FALSE(found) << message << planted;
    EXPECT_NE(found.error().str().find(message), std::string::npos) << found.error().str();
  }
}

TEST(AsyncCopies, TheirSourceIsNotWritten) {
  TypeContext context;
  const Function function = must_parse(context, R"(loop @f(%x: Tensor[(8,), i32]) -> (%y: Tensor[(8,), i32]) {
  alloc %m: Tensor[(8,), i32] {
    for b in (1) block_x { for t in (8) thread_x { stage fill(t in (8) at (t)) { %m[t] = %x[t]; } } }
    for b in (1) block_x {
      alloc %s: Tensor[(8,), i32] in shared {
        for t in (8) thread_x { stage load(t in (8) at (t)) async { %s[t] = %m[t]; } }
        commit;
        for t in (8) thread_x { stage over(t in (8) at (t)) { %m[t] = i32(0); } }
        wait(0);
        for t in (8) thread_x { stage store(t in (8) at (t)) { %y[t] = %s[t]; } }
      }
    }
  }
})");
  const auto found = evaluate(context, function, std::vector{counted({8})}, {});
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().str().find("of %m is written while an asynchronous copy reads it"), std::string::npos)
      << found.error().str();
}

TEST(AsyncCopies, AreCopiesToSharedMemoryByStatementsOfBlocks) {
  const std::string text(kAsyncReverse);
  const std::vector<std::array<std::string, 3>> cases = {
      {"%x[b, t];", "%x[b, t] + i32(1);", "an asynchronous stage must copy an element"},
      {"%x[b, t];", "select(index(t) < index(4), %x[b, t], i32(1));", "an asynchronous stage must copy an element"},
      {" in shared", "", "an asynchronous stage must be one assignment to shared memory"},
      {"        stage load", "        commit;\n        stage load", "a commit is inside the loop 't' over threads"},
      {"        stage load", "        wait(0);\n        stage load", "a wait is inside the loop 't' over threads"},
  };
  for (const auto& [from, to, message] : cases) {
    TypeContext context;
    const auto refused = parse(context, with_replaced(text, from, to), "f.tn");
    ASSERT_FALSE(refused) << message;
    EXPECT_NE(refused.error().str().find(message), std::string::npos) << refused.error().str();
  }
  TypeContext context;
  EXPECT_TRUE(
      parse(context, with_replaced(text, "%x[b, t];", "select(index(t) < index(4), %x[b, t], i32(0));"), "f.tn"));
}

// Rows of sums of two factors, whose panels are in shared memory.
std::string product(std::string_view terms) {
  return fmt::format(
      R"(loop @product(%x: Tensor[({0}, 4), i32], %w: Tensor[({0}, 4), i32]) -> (%y: Tensor[(4,), i32]) {{
  for b in (1) block_x {{
    alloc %d: Tensor[(4,), i32] in registers {{
      for t in (4) thread_x {{ stage zero(t in (4) at (t)) {{ %d[t] = i32(0); }} }}
      for k in ({0}) {{
        alloc %xs: Tensor[(4,), i32] in shared {{
          alloc %ws: Tensor[(4,), i32] in shared {{
            for t in (4) thread_x {{ stage copy_x(k in ({0}) at (k), t in (4) at (t)) {{ %xs[t] = %x[k, t]; }} }}
            for t in (4) thread_x {{ stage copy_w(k in ({0}) at (k), t in (4) at (t)) {{ %ws[t] = %w[k, t]; }} }}
            for t in (4) thread_x {{
              stage dot(t in (4) at (t), reduce k in ({0}) at (k)) {{ %d[t] = %d[t] + %xs[3 - t] * %ws[t]; }}
            }}
          }}
        }}
      }}
      for t in (4) thread_x {{ stage y(t in (4) at (t)) {{ %y[t] = %d[t]; }} }}
    }}
  }}
}}
)",
      terms);
}

size_t barriers(const Function& function) {
  size_t count = 0;
  for_each_statement(function.body, [&](const Stmt& stmt) { count += std::holds_alternative<Barrier>(stmt.form); });
  return count;
}

// All orders of threads give the plain loops' results, and one barrier an iteration is enough.
TEST(AsyncCopies, RunAheadByTheStepPipeline) {
  for (const int64_t terms : {1, 2, 3, 7}) {
    for (const int64_t buffers : {2, 3, 4}) {
      TypeContext context;
      const Function plain = must_parse(context, product(std::to_string(terms)));
      Schedule schedule(context, plain);
      for (const std::string stage : {"copy_x", "copy_w"}) {
        const Status status = schedule.apply(fmt::format("pipeline({}, k, {}, async)", stage, buffers));
        ASSERT_TRUE(status) << status.error().str();
      }
      const std::string text = print(context, schedule.function());
      EXPECT_TRUE(equal(must_parse(context, text), schedule.function())) << text;
      const Function bound = with_barriers(context, schedule.function());
      EXPECT_EQ(barriers(bound), 1u) << print(context, bound);
      const std::vector<Tensor> params{counted({terms, 4}), counted({terms, 4})};
      const auto expected = evaluate(context, unbound(plain), params, {});
      ASSERT_TRUE(expected) << expected.error().str();
      for (const ThreadOrder order : {ThreadOrder::kForward, ThreadOrder::kBackward, ThreadOrder::kShuffled}) {
        EvaluateOptions options;
        options.threads = order;
        const auto found = evaluate(context, bound, params, options);
        ASSERT_TRUE(found) << found.error().str() << text;
        EXPECT_EQ(*found, *expected);
      }
      EXPECT_EQ(evaluate(context, unbound(bound), params, {}).value(), *expected);
      // Without the wait's barrier, and with a wait for fewer groups, the evaluator finds the fault.
      const std::string wait = fmt::format("wait({});", buffers - 2);
      const auto without_barrier =
          evaluate(context, must_parse(context, with_replaced(text, "barrier;", "")), params, {});
      EXPECT_FALSE(without_barrier) << text;
      const auto late = evaluate(
          context, must_parse(context, with_replaced(text, wait, fmt::format("wait({});", buffers - 1))), params, {});
      ASSERT_FALSE(late) << text;
      EXPECT_NE(late.error().str().find("is read while it is in flight"), std::string::npos) << late.error().str();
    }
  }
}

TEST(AsyncCopies, OtherStagesDoNotRunAhead) {
  struct Case {
    std::vector<std::string> before;
    std::string step, message;
  };
  const Case cases[] = {
      {{}, "pipeline(copy_x, k, 1, async)", "1 buffers do not hold a copy ahead"},
      {{}, "pipeline(copy_x, k, 2)", "requires a stage and a loop, optionally a number of buffers and async"},
      {{}, "pipeline(copy_w, k, 2, async)", "is not the first of several statements in the loop 'k'"},
      {{"pipeline(copy_x, k, 2, async)"}, "pipeline(copy_w, k, 3, async)", "the loop 'k' has 2 buffers already"},
      {{}, "pipeline(zero, t, 2, async)", "has a loop kind already"},
  };
  for (const Case& c : cases) {
    TypeContext context;
    Schedule schedule(context, must_parse(context, product("5")));
    ASSERT_TRUE(schedule.apply(c.before));
    const Status status = schedule.apply(c.step);
    ASSERT_FALSE(status) << c.step;
    EXPECT_NE(status.error().str().find(c.message), std::string::npos) << status.error().str();
  }
  TypeContext context;
  Schedule schedule(context, must_parse(context, with_replaced(product("5"), "= %x[k, t];", "= %x[k, t] + i32(1);")));
  const Status status = schedule.apply("pipeline(copy_x, k, 2, async)");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().str().find("an asynchronous stage must copy an element"), std::string::npos)
      << status.error().str();
}

}  // namespace
}  // namespace tenon::compiler::loop
