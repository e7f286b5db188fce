// Runs under a budget of memory: tensors are given up and computed again, and no bit of a result changes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/passes.h"
#include "runtime/vm/session.h"

namespace tenon::compiler {
namespace {

using runtime::MemoryRecord;
using runtime::Tensor;
using testing::HasSubstr;

constexpr uint64_t kPlenty = uint64_t{1} << 40;

struct Outcome {
  Expected<std::vector<runtime::Value>> results;
  MemoryRecord memory;
};

bool same(std::span<const runtime::Value> a, std::span<const runtime::Value> b) {
  return std::ranges::equal(a, b, [](const runtime::Value& x, const runtime::Value& y) {
    return x.tensor() == y.tensor() && x.object->constructor == y.object->constructor && same(x.fields(), y.fields());
  });
}

class BudgetTest : public testing::Test {
 protected:
  void compile(const std::string& text, bool ahead_of_time = false) {
    auto module = parse(context_, "#[version = \"1\"]\n" + text);
    ASSERT_TRUE(module) << module.error().str();
    auto passed = run_passes(context_, std::move(*module), standard_passes());
    ASSERT_TRUE(passed) << passed.error().str();
    passed = run_passes(context_, std::move(*passed), kernel_passes());
    ASSERT_TRUE(passed) << passed.error().str();
    LowerOptions options{.name = "test", .facts = {}, .cpu = {.native = true}};
    options.cpu.ahead_of_time = ahead_of_time;
    auto executable = lower(context_, *passed, context_.symbol("main"), {}, options);
    ASSERT_TRUE(executable) << executable.error().str();
    executable_ = std::move(*executable);
  }
  Outcome run(const std::vector<Tensor>& inputs, runtime::SessionOptions options) {
    auto session = runtime::Session::create(executable_, std::move(options));
    if (!session) return {std::unexpected(session.error()), {}};
    const std::vector<runtime::Value> values(inputs.begin(), inputs.end());
    auto results = session->run_values(values);
    if (results) results = session->run_values(values);  // the second run has the costs of the first one
    return {std::move(results), session->memory()};
  }
  // All budgets between a part of the peak and the peak; how many calls were executed again at most.
  uint64_t repeated(const std::vector<Tensor>& inputs) {
    const Outcome free = run(inputs, {.threads = 1});
    EXPECT_TRUE(free.results) << free.results.error().str();
    const Outcome plenty = run(inputs, {.threads = 1, .budget = kPlenty});
    EXPECT_TRUE(plenty.results) << plenty.results.error().str();
    if (!free.results || !plenty.results) return 0;
    EXPECT_TRUE(same(*plenty.results, *free.results));
    EXPECT_EQ(plenty.memory.evictions, 0u);
    uint64_t most = 0;
    int fit = 0;
    for (int part = 20; part > 0; --part) {
      const uint64_t budget = plenty.memory.peak_bytes * static_cast<uint64_t>(part) / 20;
      for (const auto policy : {runtime::remat::Policy::kEq, runtime::remat::Policy::kLru}) {
        const Outcome outcome = run(inputs, {.threads = 2, .budget = budget, .remat_policy = policy});
        if (!outcome.results) {
          EXPECT_THAT(outcome.results.error().str(), HasSubstr("of the budget of " + std::to_string(budget)));
          continue;
        }
        ++fit;
        EXPECT_TRUE(same(*outcome.results, *free.results)) << budget;
        EXPECT_LE(outcome.memory.peak_bytes, budget);
        most = std::max(most, outcome.memory.repeated_calls);
      }
    }
    EXPECT_GE(fit, 8);
    return most;
  }

  Context context_;
  runtime::Executable executable_;
};

Tensor steps(int64_t value) { return Tensor::of<int64_t>({}, std::span<const int64_t>(&value, 1)); }
Tensor matrix(int64_t rows, int64_t columns) {
  Tensor tensor(runtime::DType::kF32, {rows, columns});
  float value = 0.25f;
  for (float& element : tensor.data<float>()) element = value = value < 0.5f ? value + 0.017f : value - 0.6f;
  return tensor;
}

// What a step of training does: values of the way there are read on the way back.
TEST_F(BudgetTest, AGradientIsTheSame) {
  std::string text = "def @net(%x: Tensor[(32, 64), f32], %w: Tensor[(64, 64), f32]) -> Tensor[(), f32] {\n";
  std::string last = "x";
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("let %h{} = tanh(matmul(%{}, %w));\n", i, last);
    last = fmt::format("h{}", i);
  }
  compile(text + "sum(%" + last + R"() }
    def @main(%x: Tensor[(32, 64), f32], %w: Tensor[(64, 64), f32]) -> (Tensor[(), f32], Tensor[(64, 64), f32]) {
      let %p = gradient(@net, wrt=[1])(%x, %w);
      let %d = %p.1;
      (%p.0, %d.0)
    })");
  EXPECT_GT(repeated({matrix(32, 64), matrix(64, 64)}), 4u);
}

// A list of tensors is built by one recursion and read by another one, from its end.
TEST_F(BudgetTest, TensorsInDataTypesAreTheSame) {
  for (const bool ahead_of_time : {false, true}) {
    compile(R"(
      type Stack { Push(Tensor[(16, 64), f32], Stack), End }
      def @build(%x: Tensor[(16, 64), f32], %w: Tensor[(64, 64), f32], %n: Tensor[(), i64], %s: Stack) -> Stack {
        if (%n < 1i64) { %s } else {
          let %y = tanh(matmul(%x, %w));
          @build(%y, %w, %n - 1i64, Push(%y, %s))
        }
      }
      def @fold(%s: Stack, %sum: Tensor[(16, 64), f32]) -> Tensor[(16, 64), f32] {
        match (%s) {
          Push(%y, %rest) => @fold(%rest, tanh(%sum * %y)),
          End => %sum
        }
      }
      def @main(%x: Tensor[(16, 64), f32], %w: Tensor[(64, 64), f32], %n: Tensor[(), i64])
          -> (Tensor[(16, 64), f32], Stack) {
        let %s = @build(%x, %w, %n, End);
        (@fold(%s, %x), Push(%x, End))
      })",
            ahead_of_time);
    EXPECT_GT(repeated({matrix(16, 64), matrix(64, 64), steps(30)}), 4u) << ahead_of_time;
  }
}

// Tensors in closures and references, and branches that read an element.
TEST_F(BudgetTest, TensorsInClosuresAndReferencesAreTheSame) {
  std::string text = "def @main(%x: Tensor[(32, 64), f32], %w: Tensor[(64, 64), f32]) -> Tensor[(32, 64), f32] {\n";
  std::string last = "x", sum = "%e";
  for (int i = 0; i < 10; ++i) {
    text += fmt::format(
        "let %h{0} = tanh(matmul(%{1}, %w));\n"
        "let %f{0} = fn(%y: Tensor[(32, 64), f32]) -> Tensor[(32, 64), f32] {{ tanh(%y * %h{0}) }};\n"
        "let %r{0} = ref(%h{0});\n",
        i, last);
    last = fmt::format("h{}", i);
    sum = fmt::format("%f{0}(matmul({1}, %w)) + read(%r{0})", i, sum);
  }
  text += "write(%r3, tanh(matmul(%h9, %w)));\n";
  text += "let %e = if (reshape(slice(%h4, begin=[0, 0], end=[1, 1], step=[1, 1]), shape=[]) > 0f32) ";
  compile(text + "{ %f1(%h2) } else { tanh(%f2(%h1)) };\n" + sum + "}");
  EXPECT_GT(repeated({matrix(32, 64), matrix(64, 64)}), 0u);
}

// Whatever needs more than there is says how much, and the session can be used again.
TEST_F(BudgetTest, ACallThatCannotFitSaysWhatItNeeds) {
  compile(R"(
    def @main[n](%x: Tensor[(n, 64), f32]) -> Tensor[(n, 64), f32] { tanh(softmax(%x)) }
  )");
  auto session = runtime::Session::create(executable_, {.threads = 1, .budget = 40000});
  ASSERT_TRUE(session) << session.error().str();
  const auto large = session->run(std::vector{matrix(100, 64)});
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().str(),
              HasSubstr("of the budget of 40000 bytes are in use, and none of them can be evicted"));
  EXPECT_THAT(large.error().str(), HasSubstr("the budget must be at least "));
  EXPECT_TRUE(session->run(std::vector{matrix(16, 64)}));
  const auto inputs = session->run(std::vector{matrix(200, 64)});
  ASSERT_FALSE(inputs);
  EXPECT_THAT(inputs.error().str(), HasSubstr("51200 bytes are needed, 0 of the budget of 40000 bytes are in use"));
}

// A decoder's cache becomes longer without room after it.
TEST_F(BudgetTest, AGrowingTensorIsTheSame) {
  compile(R"(
    def @grow(%cache: Tensor[(1, ?, 64), f32], %x: Tensor[(1, 1, 64), f32], %n: Tensor[(), i64])
        -> Tensor[(1, ?, 64), f32] {
      if (%n < 1i64) { %cache } else {
        @grow(concat(%cache, tanh(%x), axis=1), tanh(%x), %n - 1i64)
      }
    }
    def @main(%x: Tensor[(1, 1, 64), f32], %n: Tensor[(), i64]) -> Tensor[(1, ?, 64), f32] {
      @grow(%x, %x, %n)
    })");
  const Tensor x = matrix(1, 64).reshaped({1, 1, 64});
  const Outcome free = run({x, steps(20)}, {.threads = 1});
  ASSERT_TRUE(free.results) << free.results.error().str();
  const Outcome tight = run({x, steps(20)}, {.threads = 1, .budget = 16384});
  ASSERT_TRUE(tight.results) << tight.results.error().str();
  EXPECT_TRUE(same(*tight.results, *free.results));
}

}  // namespace
}  // namespace tenon::compiler
