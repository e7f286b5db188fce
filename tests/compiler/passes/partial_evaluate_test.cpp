// Partial evaluation in text form: a module, what remains of it, and that both mean the same.
#include "compiler/passes/partial_evaluate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"

namespace tenon::compiler {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kTypes =
    "const $ones: Tensor[(2,), f32] = [1, 1];\nconst $zeros: Tensor[(2,), f32] = [0, 0];\n"
    "type List[A] { Nil, Cons(A, List[A]) }\ntype Box { Box(Tensor[(2,), f32]) }\n";
const std::string kMapModule =
    "def @map[A, B](%f: fn(A) -> B, %l: List[A]) -> List[B] {\n"
    "  match %l { Nil => Nil, Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)) }\n"
    "}\n";
const std::string kPower =
    "def @power(%x: Tensor[(2,), f32], %n: Tensor[(), i64]) -> Tensor[(2,), f32] {\n"
    "  if (%n == 0i64) { $ones } else { %x * @power(%x, %n - 1i64) }\n"
    "}\n";
const std::string kMain = "def @main(%x: Tensor[(2,), f32], %c: Tensor[(), bool]) -> Tensor[(2,), f32] ";

class PartialEvaluation : public testing::Test {
 protected:
  Module read(const std::string& text) {
    auto module = parse(context_, "#[version = \"1\"]\n" + kTypes + text);
    EXPECT_TRUE(module) << module.error().str();
    return module ? std::move(*module) : Module{};
  }
  Module evaluate(const Module& module, const PartialEvaluationLimits& limits = {}) {
    auto result = partial_evaluate(context_, clone(module), limits);
    EXPECT_TRUE(result) << result.error().str();
    if (!result) return {};
    const Status status = verify(context_, *result);
    EXPECT_TRUE(status) << status.error().str();
    return std::move(*result);
  }
  size_t bindings(const Module& module) {
    size_t count = 0;
    for_each_function(module, [&](Symbol, const Function& function) {
      for_each_binding(function.body, [&](const Binding&) { ++count; });
    });
    return count;
  }
  // Both modules compute the same bits, or stop with the same error, for both conditions.
  void expect_same_results(const Module& a, const Module& b) {
    for (const bool condition : {true, false}) {
      const std::vector inputs{runtime::Tensor::of<float>({2}, std::array{0.5f, -3.0f}),
                               runtime::Tensor::of<bool>({}, std::array{condition})};
      const auto x = interpret(context_, a, context_.symbol("main"), inputs);
      const auto y = interpret(context_, b, context_.symbol("main"), inputs);
      ASSERT_EQ(x.has_value(), y.has_value());
      if (!x) {
        EXPECT_EQ(x.error().what, y.error().what);
        continue;
      }
      EXPECT_THAT(x->at(0).data<float>(), testing::ElementsAreArray(y->at(0).data<float>()));
    }
  }
  void expect_equal(const std::string& before, const std::string& after) {
    const Module wanted = read(after), found = evaluate(read(before));
    EXPECT_TRUE(equal(found, wanted)) << "found\n"
                                      << print(context_, found).text << "wanted\n"
                                      << print(context_, wanted).text;
  }
  // The same of modules whose @main has the parameters of kMain, which run before and after.
  void expect(const std::string& before, const std::string& after) {
    expect_equal(before, after);
    const Module module = read(before);
    expect_same_results(module, evaluate(module));
  }

  Context context_;
};

TEST_F(PartialEvaluation, UnfoldsCallsAndClosures) {
  expect(
      "def @twice(%f: fn(Tensor[(2,), f32]) -> Tensor[(2,), f32], %y: Tensor[(2,), f32]) -> Tensor[(2,), f32] {\n"
      "  %f(%f(%y))\n"
      "}\n" +
          kMain + "{ @twice(fn (%y: Tensor[(2,), f32]) { %y + %x }, %x) }",
      kMain + "{ %x + %x + %x }");
}

TEST_F(PartialEvaluation, TakesKnownBranchesAndParts) {
  expect(kMain +
             "{ let %p = (%x, tanh(%x)); match Cons(%p.1, Nil) { Nil => %x, Cons(%y, _) => if (1i64 == 1i64) { "
             "relu(%y) } else { %y } } }",
         kMain + "{ relu(tanh(%x)) }");
}

// An arm knows the condition or the pattern that selects it.
TEST_F(PartialEvaluation, KnowsTheConditionInAnArm) {
  expect(kMain + "{ if (%c) { if (%c) { relu(%x) } else { tanh(%x) } } else { if (%c) { relu(%x) } else { %x } } }",
         kMain + "{ if (%c) { relu(%x) } else { %x } }");
  expect_equal(
      "def @main(%b: Box) -> Tensor[(2,), f32] { match %b { Box(%y) => { match %b { Box(%z) => %y + %z } } } }",
      "def @main(%b: Box) -> Tensor[(2,), f32] { match %b { Box(%y) => %y + %y } }");
}

TEST_F(PartialEvaluation, UnfoldsRecursionOnKnownData) {
  expect(kPower + kMain + "{ @power(%x, 3i64) }", kMain + "{ %x * (%x * (%x * $ones)) }");
  expect(kMapModule +
             "def @sum(%l: List[Tensor[(2,), f32]], %z: Tensor[(2,), f32]) -> Tensor[(2,), f32] {\n"
             "  match %l { Nil => %z, Cons(%x, %rest) => @sum(%rest, %z + %x) }\n"
             "}\n" +
             kMain + "{ @sum(@map(fn (%y: Tensor[(2,), f32]) { tanh(%y) }, Cons(%x, Cons(relu(%x), Nil))), %x) }",
         kMain + "{ let %r = relu(%x); let %a = tanh(%x); let %b = tanh(%r); %x + %a + %b }");
}

// The recursion over the unknown end of a list stays a call.
TEST_F(PartialEvaluation, UnfoldsRecursionAsFarAsTheDataAreKnown) {
  const std::string length =
      "def @length(%l: List[Tensor[(), f32]], %n: Tensor[(), i64]) -> Tensor[(), i64] {\n"
      "  match %l { Nil => %n, Cons(_, %rest) => @length(%rest, %n + 1i64) }\n"
      "}\n";
  const std::string main = "def @main(%l: List[Tensor[(), f32]]) -> Tensor[(), i64] ";
  expect_equal(length + main + "{ @length(Cons(1f32, Cons(2f32, %l)), 0i64) }",
               length + main + "{ @length(%l, 2i64) }");
}

// Neither recursion that unknown data control is unfolded, nor recursion without end; nothing of the attempt remains.
TEST_F(PartialEvaluation, KeepsOtherRecursion) {
  const std::string until =
      "def @until(%x: Tensor[(2,), f32], %n: Tensor[(), i64]) -> Tensor[(2,), f32] {\n"
      "  if (gather(%x, 0i64) > 9f32) { %x } else { @until(%x + 1f32, %n + 1i64) }\n"
      "}\n" +
      kMain + "{ @until(%x, 0i64) }";
  expect(until, until);
  const std::string endless =
      "def @endless(%x: Tensor[(2,), f32], %n: Tensor[(), i64]) -> Tensor[(2,), f32] { @endless(%x, %n + 1i64) }\n" +
      kMain + "{ if (%c) { %x } else { @endless(%x, 0i64) } }";
  expect_equal(endless, endless);
  // With less fuel than the data require the call stays too.
  const Module power = read(kPower + kMain + "{ @power(%x, 100i64) }");
  EXPECT_TRUE(equal(evaluate(power, {.unfolding_depth = 50}), power));
  EXPECT_EQ(evaluate(power).globals.size(), 1u);
}

TEST_F(PartialEvaluation, FollowsReferences) {
  const std::string pair =
      "def @main(%x: Tensor[(2,), f32], %y: Tensor[(2,), f32]) -> (Tensor[(2,), f32], Tensor[(2,), f32]) ";
  // The gradient of x * y by back-propagators in a reference: no reference and no closure remains.
  expect_equal(
      pair +
          "{ let %gx = ref($zeros); let %gy = ref($zeros); let %gz = ref($ones); let %bp = ref(fn () { () });\n"
          "let %old = read(%bp);\n"
          "write(%bp, fn () { write(%gx, read(%gx) + read(%gz) * %y); write(%gy, read(%gy) + read(%gz) * %x); "
          "%old() });\n"
          "let %run = read(%bp); %run(); (read(%gx), read(%gy)) }",
      pair + "{ ($zeros + $ones * %y, $zeros + $ones * %x) }");
}

// A reference that an arm or unknown code may have written is read.
TEST_F(PartialEvaluation, ReadsReferencesThatAreNotKnown) {
  const std::string arm = kMain + "{ let %r = ref(%x); if (%c) { write(%r, tanh(%x)) } else { () }; read(%r) }";
  expect(arm, arm);
  const std::string call =
      "def @main(%x: Tensor[(2,), f32], %f: fn(Ref[Tensor[(2,), f32]]) -> ()) -> Tensor[(2,), f32] {\n"
      "  let %r = ref(%x); %f(%r); read(%r)\n"
      "}\n";
  expect_equal(call, call);
}

// Checks that fail and operators that fail do so where they did, and only where they are reached.
TEST_F(PartialEvaluation, KeepsFailures) {
  const std::string divide = kMain + "{ if (1i64 / 0i64 == 1i64) { %x } else { tanh(%x) } }";
  expect(divide, divide);
  expect("def @checked[n](%y: Tensor[(n,), f32]) -> Tensor[(3,), f32] { match_cast(%y, Tensor[(3,), f32]) }\n" + kMain +
             "{ let %a = (if (%c) { slice(@checked(%x), begin=[0], end=[2], step=[1]) } else { %x }); %a }",
         "def @checked[n](%y: Tensor[(n,), f32]) -> Tensor[(3,), f32] { match_cast(%y, Tensor[(3,), f32]) }\n" + kMain +
             "{ let %a = (if (%c) { slice(@checked(%x), begin=[0], end=[2], step=[1]) } else { %x }); %a }");
  expect(kMain + "{ if (true) { %x } else { match_cast[k](%x, Tensor[(k,), f32]); tanh(%x) } }", kMain + "{ %x }");
}

// A value whose size is erased where it was put into a list has no size where it is taken out.
TEST_F(PartialEvaluation, KeepsErasedSizesErased) {
  expect(kMain +
             "{ let %l: List[Tensor[(?,), f32]] = Cons(%x, Nil); let %r = ref(match %l { Cons(%y, _) => %y, Nil => "
             "match_cast(%x, Tensor[(?,), f32]) }); match_cast(read(%r), Tensor[(2,), f32]) }",
         kMain + "{ match_cast(match_cast(%x, Tensor[(?,), f32]), Tensor[(2,), f32]) }");
}

// The result is linear in the module, also where each function calls the previous one twice.
TEST_F(PartialEvaluation, IsLinear) {
  const auto chain = [](int functions) {
    std::string text = "def @f0(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] { tanh(%x) }\n";
    for (int i = 1; i <= functions; ++i) {
      text +=
          fmt::format("def @f{}(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] {{ @f{}(@f{}(%x)) }}\n", i, i - 1, i - 1);
    }
    return text + fmt::format("def @all(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] {{ @f{}(%x) }}\n", functions);
  };
  const auto visits = [&](const std::string& text) {
    const Module module = read(text);
    const uint64_t before = context_.visits();
    const Module result = partial_evaluate(context_, clone(module)).value();
    EXPECT_LT(bindings(result), 80 * bindings(module));
    return static_cast<double>(context_.visits() - before) / static_cast<double>(bindings(module));
  };
  EXPECT_LT(visits(chain(320)), 1.2 * visits(chain(80)));
  const auto line = [](int operators) {
    std::string text = "def @main(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] {\n";
    for (int i = 0; i < operators; ++i) text += "let %x = tanh(%x);\n";
    return text + "%x }\n";
  };
  EXPECT_LT(visits(line(2000)), 1.2 * visits(line(200)));
}

// The examples of the literature, whose data are all known, compute what they state.
TEST_F(PartialEvaluation, KeepsTheExamplesOfTheLiterature) {
  auto module = load(context_, std::filesystem::path(TENON_SOURCE_DIR) / "tests/examples/literature.tn");
  ASSERT_TRUE(module) << module.error().str();
  const Module result = evaluate(*module);
  for (const auto& [symbol, global] : result.globals) {
    const std::string name(context_.name(symbol));
    if (!name.starts_with("example_")) continue;
    const auto pair = interpret(context_, result, symbol, std::span<const RunValue>());
    ASSERT_TRUE(pair) << name << ": " << pair.error().str();
    EXPECT_EQ(str(context_, pair->fields()[0]), str(context_, pair->fields()[1])) << name;
  }
}

}  // namespace
}  // namespace tenon::compiler
