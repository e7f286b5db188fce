// Dims as values, and attributes that are dims or operands: through inference, printing, parsing, interpretation,
// passes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "compiler/ir/effects.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/pass.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;
using testing::AllOf;
using testing::HasSubstr;

class Computed : public testing::Test {
 protected:
  Expected<Module> parsed(const std::string& text) {
    return parse(context_, "#[version = \"1\"]\ntype Opt[A] { Some(A), N }\n" + text, {}, "m.tn");
  }
  Module read(const std::string& text) {
    auto module = parsed(text);
    EXPECT_TRUE(module) << module.error().str();
    if (!module) return {};
    const Status status = verify(context_, *module);
    EXPECT_TRUE(status) << status.error().str();
    expect_round_trip(*module);
    return std::move(*module);
  }
  void expect_round_trip(const Module& module) {
    const Text text = print(context_, module);
    auto again = parse(context_, text.text, text.side, "again.tn");
    ASSERT_TRUE(again) << again.error().str() << text.text;
    EXPECT_TRUE(equal(module, *again)) << text.text << print(context_, *again).text;
  }
  std::string fails(const std::string& text) {
    auto module = parsed(text);
    EXPECT_FALSE(module);
    return module ? "" : module.error().str();
  }
  Expected<std::vector<Tensor>> run(const Module& module, const std::vector<Tensor>& inputs) {
    return interpret(context_, module, context_.symbol("main"), std::span<const Tensor>(inputs));
  }
  // The result of @main, which no pass changes.
  Tensor result(const std::string& text, const std::vector<Tensor>& inputs) {
    const Module module = read(text);
    auto wanted = run(module, inputs);
    EXPECT_TRUE(wanted) << wanted.error().str();
    if (!wanted) return {};
    std::vector<std::vector<Pass>> lists{standard_passes()};
    for (const Pass& pass : all_passes()) lists.push_back({pass});
    for (const auto& passes : lists) {
      auto after = run_passes(context_, clone(module), passes, {.verify = true});
      EXPECT_TRUE(after) << passes[0].name << ": " << after.error().str();
      if (!after) continue;
      auto found = run(*after, inputs);
      EXPECT_TRUE(found && *found == *wanted) << passes[0].name << print(context_, *after).text;
      expect_round_trip(*after);
    }
    return wanted->front();
  }
  static Tensor i64(const std::vector<int64_t>& values) {
    return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
  }
  static Tensor scalar(int64_t value) { return Tensor::of<int64_t>({}, std::vector{value}); }
  static Tensor zeros(runtime::Shape shape) { return Tensor(runtime::DType::kF32, std::move(shape)); }

  Context context_;
};

TEST_F(Computed, ADimIsAScalar) {
  const std::string text = R"(
    def @main[k, m](%x: Tensor[(k, 2*m), f32]) -> Tensor[(), i64] { k * size(2*m + 1) + m })";
  EXPECT_EQ(result(text, {zeros({3, 8})}), scalar(31));
  EXPECT_EQ(result(text, {zeros({0, 0})}), scalar(0));
}

TEST_F(Computed, ADimWithTheNameOfAConstructorOrAKeywordIsWrittenAsSize) {
  const std::string text = R"(
    def @main[N, read](%x: Tensor[(N, read), f32]) -> Tensor[(), i64] { size(N) + size(read) })";
  EXPECT_EQ(result(text, {zeros({3, 8})}), scalar(11));
}

TEST_F(Computed, DimsMayDivide) {
  EXPECT_EQ(result(R"(
    def @main[n](%x: Tensor[(n,), f32]) -> Tensor[(), i64] {
      let %half = arange(count=size((n + 1) // 2)); // a comment after a division
      let %whole = full(shape=[n // 2, n % 3], value=1.0, dtype="f32"); // and after a list
      sum(%half, axes=[0]) + size(n // 2 + n % 3) * 100i64 + reshape(sum(cast(%whole, dtype="i64"), axes=[0, 1]), shape=[]) * 10000i64
    })",
                   {zeros({8})}),
            scalar(6 + 600 + 80000));
}

TEST_F(Computed, DimsMayBeginWithTheNameOfAnOperator) {
  EXPECT_EQ(result(R"(
    def @main[n](%x: Tensor[(n,), f32]) -> Tensor[(), i64] {
      sum(arange(count=size(min(n, 3))), axes=[0]) + sum(arange(count=size(max(n - 6, 0))), axes=[0]) * 100i64
    })",
                   {zeros({9})}),
            scalar(3 + 300));
}

TEST_F(Computed, AClosureAndAMatchCastKnowTheirDims) {
  const std::string text = R"(
    def @main[k](%x: Tensor[(k,), f32], %c: Tensor[(k,), bool]) -> Tensor[(), i64] {
      let %f = fn (%y: Tensor[(), i64]) { %y * k };
      let %kept = match_cast[j](compress(%x, %c), Tensor[(j,), f32]);
      %f(j + 1i64)
    })";
  const Tensor condition = Tensor::of<bool>({3}, std::array{true, false, true});
  EXPECT_EQ(result(text, {zeros({3}), condition}), scalar(9));
}

TEST_F(Computed, ACallBindsTheDimsOfItsCallee) {
  EXPECT_EQ(result(R"(
    def @rows[k](%x: Tensor[(k, 2), f32]) -> Tensor[(), i64] { k }
    def @main[k](%x: Tensor[(2*k, 2), f32]) -> Tensor[(), i64] { @rows(%x) + k })",
                   {zeros({6, 2})}),
            scalar(9));
}

TEST_F(Computed, AttributesMayBeDims) {
  EXPECT_EQ(result("def @main[k](%x: Tensor[(k,), f32]) -> Tensor[(k,), i64] { arange(count=k) }", {zeros({3})}),
            i64({0, 1, 2}));
  EXPECT_EQ(result(R"(
    def @main[k](%x: Tensor[(k,), f32]) -> Tensor[(k, 2*k), f32] { full(shape=[k, 2*k], value=0.0) })",
                   {zeros({2})}),
            zeros({2, 4}));
  EXPECT_EQ(result(R"(
    def @main[k](%x: Tensor[(4*k,), f32]) -> Tensor[(2, k, 2), f32] { reshape(%x, shape=[2, k, 2], zero=1) })",
                   {zeros({12})}),
            zeros({2, 3, 2}));
  EXPECT_EQ(result(R"(
    def @main[k](%x: Tensor[(k,), f32], %y: Tensor[(5,), i64]) -> Tensor[(min(k, 5),), i64] {
      slice(%y, begin=[0], end=[k], step=[1])
    })",
                   {zeros({3}), i64({5, 6, 7, 8, 9})}),
            i64({5, 6, 7}));
}

TEST_F(Computed, AttributesMayBeOperands) {
  const std::string text = R"(
    def @main(%x: Tensor[(2, 3), i64], %shape: Tensor[(1,), i64]) -> Tensor[(?,), i64] { reshape(%x, shape=%shape) })";
  const Tensor x = Tensor::of<int64_t>({2, 3}, std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(result(text, {x, i64({6})}), i64({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(result(text, {x, i64({-1})}), i64({1, 2, 3, 4, 5, 6}));
  const auto failed = run(read(text), {x, i64({7})});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().str(), HasSubstr("reshape: the number of elements differs"));
  EXPECT_EQ(result(R"(
    def @main(%x: Tensor[(2, 3), i64], %axes: Tensor[(1,), i64]) -> Tensor[(?, ?), i64] {
      sum(%x, keep=1, axes=%axes * 1i64)
    })",
                   {x, i64({1})}),
            Tensor::of<int64_t>({2, 1}, std::vector<int64_t>{6, 15}));
  EXPECT_EQ(result(R"(
    def @main(%x: Tensor[(2, 3), i64], %k: Tensor[(), i64]) -> Tensor[(?, ?), i64] { top_k(%x, k=%k).0 })",
                   {x, scalar(1)}),
            Tensor::of<int64_t>({2, 1}, std::vector<int64_t>{3, 6}));
}

TEST_F(Computed, AnOperandMayFailAndStaysWhereItIs) {
  const Module module = read(R"(
    def @main(%k: Tensor[(), i64]) -> Tensor[(), f32] { let %y = arange(count=%k); 1.0f32 })");
  const Effects effects(context_, module);
  EXPECT_EQ(effects.of_function(context_.symbol("main")), Effect::kCheck);
}

TEST_F(Computed, Errors) {
  EXPECT_THAT(fails("def @main[k](%x: Tensor[(k,), f32]) { arange(count=k - 5) }"),
              AllOf(HasSubstr("m.tn:3:39: error: arange: count must be at least 0, and it is not proved that k - 5 is"),
                    HasSubstr("\n  help: write max(k - 5, 0)")));
  EXPECT_THAT(fails("def @main[k](%x: Tensor[(k,), f32]) { transpose(%x, axes=%x) }"), HasSubstr("expected a number"));
  EXPECT_THAT(fails("def @main[k](%x: Tensor[(k,), f32]) { reshape(%x, shape=[k]) }"),
              AllOf(HasSubstr("cannot be reshaped to [k]: k may be 0"),
                    HasSubstr("\n  help: set zero=1, so that 0 is a size and does not copy the size of x")));
  EXPECT_THAT(fails("def @main[k](%x: Tensor[(k,), i64]) { reshape(%x, shape=%x) }"),
              HasSubstr("reshape: the number of values of 'shape' must be a constant, at most 64: Tensor[(k,), i64]"));
  EXPECT_THAT(fails("def @main(%x: Tensor[(1,), f32]) { reshape(%x, shape=%x) }"),
              HasSubstr("reshape: attribute 'shape' must be a vector of i64, found Tensor[(1,), f32]"));
  EXPECT_THAT(fails("def @main[k](%x: Tensor[(k,), f32]) { size(j) }"), HasSubstr("the dim variable is not declared"));
  EXPECT_THAT(fails("def @main[k](%x: Tensor[(k,), f32]) { arange(count=k, count=2) }"),
              HasSubstr("attribute 'count' is given twice"));
}

TEST_F(Computed, ASubstitutedDimIsAConstantAttribute) {
  Module module = read("def @main[k](%x: Tensor[(k,), f32]) -> Tensor[(k,), i64] { arange(count=k) }");
  Function& function = *module.function(context_.symbol("main"));
  substitute(context_, function, {{context_.symbol("k"), context_.dim(3)}});
  function.dims.clear();
  ASSERT_TRUE(verify(context_, module));
  EXPECT_THAT(print(context_, module).text, HasSubstr("arange(count=3)"));
}

TEST_F(Computed, AWrongModuleIsFound) {
  Module module = read("def @main[k](%x: Tensor[(k,), f32]) -> Tensor[(k,), i64] { arange(count=k) }");
  Function& function = *module.function(context_.symbol("main"));
  for_each_dim(function.body.bindings[0].value, [&](Dim& dim) { dim = context_.dim(context_.symbol("j")); });
  const Status status = verify(context_, module);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().str(), HasSubstr("the dim j is not in scope here"));
}

}  // namespace
}  // namespace tenon::compiler
