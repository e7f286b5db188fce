// Tests of the language beyond first order: types, control flow, closures, recursion and references, through inference,
// printing, parsing and interpretation.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "compiler/ir/effects.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/pass.h"
#include "tests/rounds.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kHeader = "#[version = \"1\"]\n";
const std::string kList = "type List[A] { Cons(A, List[A]), Nil }\n";

class Language : public testing::Test {
 protected:
  Module read(const std::string& text) {
    auto module = parse(context_, kHeader + text, {}, "m.tn");
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
    EXPECT_TRUE(equal(module, *again)) << text.text;
    EXPECT_EQ(print(context_, *again).text, text.text);
  }
  std::vector<Tensor> run(const Module& module, const std::vector<Tensor>& inputs) {
    auto result = interpret(context_, module, context_.symbol("main"), std::span<const Tensor>(inputs));
    EXPECT_TRUE(result) << result.error().str();
    return result ? *result : std::vector<Tensor>(1);
  }
  // The results of @main are unchanged by each pass and by all standard passes.
  void expect_unchanged_by_passes(const Module& module, const std::vector<Tensor>& inputs) {
    const auto wanted = run(module, inputs);
    for (const Pass& pass : all_passes()) {
      auto after = run_passes(context_, clone(module), std::vector{pass}, {.verify = true});
      ASSERT_TRUE(after) << pass.name << ": " << after.error().str();
      EXPECT_EQ(run(*after, inputs), wanted) << pass.name << print(context_, *after).text;
      expect_round_trip(*after);
    }
    auto after = run_passes(context_, clone(module), standard_passes(), {.verify = true});
    ASSERT_TRUE(after) << after.error().str();
    EXPECT_EQ(run(*after, inputs), wanted);
  }
  static Tensor f32(const std::vector<float>& values) {
    return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
  }
  static Tensor boolean(bool value) { return Tensor::of<bool>({}, std::array{value}); }

  Context context_;
};

TEST_F(Language, IfTakesOneArm) {
  const Module module = read(R"(
    def @main[n](%c: Tensor[(), bool], %x: Tensor[(n,), f32]) -> Tensor[(n,), f32] {
      let %y = if (%c) { let %z = relu(%x); add(%z, %z) } else { %x };
      multiply(%y, 0.5f32)
    })");
  EXPECT_EQ(run(module, {boolean(true), f32({-2, 4})})[0], f32({0, 4}));
  EXPECT_EQ(run(module, {boolean(false), f32({-2, 4})})[0], f32({-1, 2}));
  expect_unchanged_by_passes(module, {boolean(true), f32({-2, 4})});
}

TEST_F(Language, MatchOpensNestedPatternsInOrder) {
  const Module module = read(kList + R"(
    type Pair[A, B] { Both(A, B) }
    def @second[A](%xs: List[A], %otherwise: A) -> A {
      match %xs {
        Cons(_, Cons(%x, _)) => %x,
        Cons(%x, Nil) => %x,
        _ => %otherwise,
      }
    }
    def @main(%a: Tensor[(2,), f32], %b: Tensor[(2,), f32]) -> (Tensor[(2,), f32], Tensor[(2,), f32], Tensor[(2,), f32]) {
      let %list: List[Tensor[(2,), f32]] = Cons(%a, Cons(%b, Nil));
      let %empty: List[Tensor[(2,), f32]] = Nil;
      let %pair = match (Both(%a, (%b, %a)), %list) { (Both(_, (%x, %y)), Cons(%z, _)) => add(%x, add(%y, %z)), _ => %a };
      (@second(%list, %a), @second(%empty, %a), %pair)
    })");
  EXPECT_THAT(run(module, {f32({1, 2}), f32({3, 4})}), ElementsAre(f32({3, 4}), f32({1, 2}), f32({5, 8})));
  expect_unchanged_by_passes(module, {f32({1, 2}), f32({3, 4})});
}

TEST_F(Language, ClosuresCaptureAndRecurse) {
  const Module module = read(kList + R"(
    def @fold[A, B](%f: fn(B, A) -> B, %start: B, %xs: List[A]) -> B {
      match %xs { Nil => %start, Cons(%x, %rest) => @fold(%f, %f(%start, %x), %rest) }
    }
    def @main(%a: Tensor[(2,), f32], %b: Tensor[(2,), f32]) -> Tensor[(2,), f32] {
      let %list = Cons(%a, Cons(%b, Cons(%a, Nil)));
      let %shift = fn (%x) { add(%x, %b) };
      let %length = fn (%xs: List[Tensor[(2,), f32]]) -> Tensor[(), f32] {
        match %xs { Nil => 0.0f32, Cons(_, %rest) => add(1.0f32, %length(%rest)) }
      };
      let %sum = @fold(fn (%acc: Tensor[(2,), f32], %x: Tensor[(2,), f32]) { add(%acc, %shift(%x)) }, %a, %list);
      multiply(%sum, %length(%list))
    })");
  EXPECT_EQ(run(module, {f32({1, 10}), f32({100, 1000})})[0], f32({3 * 403, 3 * 4030}));
  expect_unchanged_by_passes(module, {f32({1, 10}), f32({100, 1000})});
}

TEST_F(Language, ReferencesKeepTheirOrder) {
  const Module module = read(R"(
    def @count(%cell: Ref[Tensor[(), f32]]) -> Tensor[(), f32] {
      let %old = read(%cell);
      write(%cell, add(%old, 1.0f32));
      %old
    }
    def @main() -> (Tensor[(), f32], Tensor[(), f32], Tensor[(), f32]) {
      let %cell = ref(5.0f32);
      let %first = @count(%cell);
      @count(%cell);
      let %unused = add(%first, %first);
      (%first, @count(%cell), read(%cell))
    })");
  const auto scalar = [](float x) { return Tensor::of<float>({}, std::array{x}); };
  EXPECT_THAT(run(module, {}), ElementsAre(scalar(5), scalar(7), scalar(8)));
  expect_unchanged_by_passes(module, {});
  const Effects effects(context_, module);
  EXPECT_EQ(effects.of_function(context_.symbol("count")), Effect::kState);
}

// A cell contains a closure that captures the cell: recursion through the heap, and a cycle that is broken at the end.
TEST_F(Language, RecursionThroughAReferenceTerminates) {
  const Module module = read(kList + R"(
    def @main(%x: Tensor[(), f32]) -> Tensor[(), f32] {
      let %start: List[Tensor[(), f32]] = Cons(%x, Cons(%x, Cons(%x, Nil)));
      let %cell = ref(fn (%xs: List[Tensor[(), f32]]) -> Tensor[(), f32] { 0.0f32 });
      let %sum = fn (%xs: List[Tensor[(), f32]]) -> Tensor[(), f32] {
        match %xs { Nil => 0.0f32, Cons(%y, %rest) => { let %f = read(%cell); add(%y, %f(%rest)) } }
      };
      write(%cell, %sum);
      %sum(%start)
    })");
  EXPECT_EQ(run(module, {Tensor::of<float>({}, std::array{2.0f})})[0], Tensor::of<float>({}, std::array{6.0f}));
}

TEST_F(Language, DimsPassThroughCallsAndLists) {
  const Module module = read(kList + R"(
    def @rnn[n](%xs: List[Tensor[(n, 2), f32]], %h: Tensor[(n, 3), f32], %w: Tensor[(5, 3), f32]) -> Tensor[(n, 3), f32] {
      match %xs {
        Nil => %h,
        Cons(%x, %rest) => { let %next = tanh(matmul(concat(%x, %h, axis=1), %w)); @rnn(%rest, %next, %w) }
      }
    }
    def @main[m](%x: Tensor[(2*m, 2), f32], %h: Tensor[(2*m, 3), f32], %w: Tensor[(5, 3), f32]) -> Tensor[(2*m, 3), f32] {
      @rnn(Cons(%x, Cons(%x, Nil)), %h, %w)
    })");
  Tensor w(runtime::DType::kF32, {5, 3});
  std::ranges::fill(w.data<float>(), 0.25f);
  const Tensor h(runtime::DType::kF32, {4, 3}), x = Tensor::of<float>({4, 2}, std::vector<float>(8, 1.0f));
  const Tensor result = run(module, {x, h, w})[0];
  const float first = std::tanh(0.5f);
  EXPECT_FLOAT_EQ(result.data<float>()[11], std::tanh(0.5f + 0.75f * first));
  expect_unchanged_by_passes(module, {x, h, w});
}

TEST_F(Language, MatchCastOpensASize) {
  EXPECT_EQ(run(read(R"(
    def @main[n](%x: Tensor[(n,), f32]) -> Tensor[(4,), f32] {
      let %z = match_cast[j](%x, Tensor[(j,), f32]);
      match_cast(add(%z, %z), Tensor[(4,), f32])
    })"),
                {f32({1, 2, 3, 4})})[0],
            f32({2, 4, 6, 8}));
  const Module cast =
      read("def @main[n](%x: Tensor[(n,), f32]) -> Tensor[(4,), f32] { match_cast(%x, Tensor[(4,), f32]) }");
  auto failed = interpret(context_, cast, context_.symbol("main"), std::span<const Tensor>(std::vector{f32({1, 2})}));
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().what, HasSubstr("match_cast: the value is Tensor[(2,), f32], must be Tensor[(4,), f32]"));
  EXPECT_EQ(failed.error().where, "m.tn:2:60");
}

TEST_F(Language, GlobalsAndLibrariesAreValues) {
  const Module module = read(R"(
    extern @halve[n](Tensor[(n,), f32]) -> Tensor[(n,), f32] = "test.halve";
    def @double(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] { add(%x, %x) }
    def @twice[A](%f: fn(A) -> A, %x: A) -> A { %f(%f(%x)) }
    def @main(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] { @halve(@twice(@double, %x)) }
  )");
  const Libraries libraries{{"test.halve", [](std::span<const RunValue> args) -> Expected<RunValue> {
                               Tensor half = args[0].tensor().clone();
                               for (float& x : half.data<float>()) x /= 2;
                               return RunValue(half);
                             }}};
  const std::vector<RunValue> inputs{f32({1, 2})};
  auto result = interpret(context_, module, context_.symbol("main"), inputs, {}, libraries);
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_EQ(result->tensor(), f32({2, 4}));
  auto without = interpret(context_, module, context_.symbol("main"), inputs);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().what, HasSubstr("no library function \"test.halve\""));
  const Libraries other{{"test.halve", [](std::span<const RunValue>) { return Expected<RunValue>(f32({1})); }}};
  auto wrong = interpret(context_, module, context_.symbol("main"), inputs, {}, other);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().what,
              HasSubstr("the results of the library function \"test.halve\" do not have its declared type"));
}

// A million nested calls, a list of a million elements, and a million tail calls in a single frame.
TEST_F(Language, RecursionDepthIsLimitedByMemoryOnly) {
  constexpr int kHalf = kSanitized ? 8 : 10;  // half of the bits of the count
  std::string half = "Zero";
  for (int i = 0; i < kHalf; ++i) half = "Next(" + half + ")";
  const Module module = read(R"(
    type Nat { Zero, Next(Nat), Twice(Nat) }
    def @double(%n: Nat) -> Nat { match %n { Zero => Zero, Twice(%m) => Twice(@double(%m)), Next(%m) => Next(Next(@double(%m))) } }
    def @count(%n: Nat) -> Tensor[(), f32] {
      match %n { Zero => 0.0f32, Twice(%m) => @count(%m), Next(%m) => add(1.0f32, @count(%m)) }
    }
    def @last(%n: Nat, %sum: Tensor[(), f32]) -> Tensor[(), f32] {
      match %n { Zero => %sum, Twice(%m) => @last(%m, %sum), Next(%m) => @last(%m, add(%sum, 1.0f32)) }
    }
    def @power(%n: Nat, %k: Nat) -> Nat {
      match %k { Zero => %n, Next(%m) => @power(@double(%n), %m), Twice(%m) => %n }
    }
    def @main() -> (Tensor[(), f32], Tensor[(), f32]) {
      let %half = )" + half + R"(;
      let %many = @power(@power(Next(Zero), %half), %half);
      (@count(%many), @last(%many, 0.0f32))
    })");
  const Tensor wanted = Tensor::of<float>({}, std::array{std::ldexp(1.0f, 2 * kHalf)});
  EXPECT_THAT(run(module, {}), ElementsAre(wanted, wanted));
}

// Nested closures are called, freed and printed without recursion on the C++ stack.
TEST_F(Language, ClosureNestingIsLimitedByMemoryOnly) {
  const Module module = read(R"(
    type Chain { End, Link(fn(Tensor[(), i64]) -> Tensor[(), i64], Chain) }
    def @chain(%n: Tensor[(), i64], %f: fn(Tensor[(), i64]) -> Tensor[(), i64]) -> fn(Tensor[(), i64]) -> Tensor[(), i64] {
      if (cast(%n, dtype="bool")) { @chain(%n - 1i64, fn(%x: Tensor[(), i64]) { %f(%x) + 1i64 }) } else { %f }
    }
    def @links(%n: Tensor[(), i64], %chain: Chain) -> Chain {
      if (cast(%n, dtype="bool")) { @links(%n - 1i64, Link(fn(%x: Tensor[(), i64]) { %x + %n }, %chain)) } else { %chain }
    }
    def @main(%n: Tensor[(), i64]) -> (Tensor[(), i64], Chain) {
      (@chain(%n, fn(%x: Tensor[(), i64]) { %x })(0i64), @links(%n, End))
    })");
  const std::vector<RunValue> inputs = {Tensor::of<int64_t>({}, std::array{int64_t{200000}})};
  auto result = interpret(context_, module, context_.symbol("main"), inputs);
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_THAT(str(context_, *result), testing::StartsWith("(200000i64, Link(a function, Link(a function, "));
  EXPECT_THAT(str(context_, *result), testing::EndsWith("..."));
}

TEST_F(Language, InfiniteRecursionIsAnError) {
  const Module module = read("def @main(%x: Tensor[(), f32]) -> Tensor[(), f32] { add(%x, @main(%x)) }");
  auto result = interpret(context_, module, context_.symbol("main"),
                          std::span<const Tensor>(std::vector{Tensor(runtime::DType::kF32, {})}));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().what, HasSubstr("the recursion is deeper than 4000000 calls"));
}

TEST_F(Language, DeadCodeEliminationKeepsEffectsOnly) {
  Module module = read(R"(
    def @loop(%x: Tensor[(), f32]) -> Tensor[(), f32] { @loop(%x) }
    def @main(%c: Tensor[(), bool], %x: Tensor[(3,), f32]) -> Tensor[(3,), f32] {
      let %a = relu(%x);
      let %f = fn (%y: Tensor[(3,), f32]) { add(%y, %a) };
      let %g = if (%c) { %f(%x) } else { %x };
      let %h = if (%c) { relu(%x) } else { %x };
      let %i = match_cast(%x, Tensor[(3,), f32]);
      %x
    })");
  EXPECT_EQ(Effects(context_, module).of_function(context_.symbol("loop")), Effect::kCheck);
  auto swept =
      run_passes(context_, std::move(module), *find_passes(std::vector<std::string>{"dead_code"}), {.verify = true});
  ASSERT_TRUE(swept);
  size_t bindings = 0;  // %a, %f and its body, %g and its arms, and the check %i
  for_each_binding(swept->function(context_.symbol("main"))->body, [&](const Binding&) { ++bindings; });
  EXPECT_EQ(bindings, 6u) << print(context_, *swept).text;
  EXPECT_FALSE(swept->function(context_.symbol("loop")));  // not reachable from @main
}

struct Mistake {
  std::string name, text, location, what;
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class LanguageMistake : public testing::TestWithParam<Mistake> {};

TEST_P(LanguageMistake, IsReportedWithLocationAndCaret) {
  Context context;
  auto module = parse(context, kHeader + kList + GetParam().text, {}, "m.tn");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().where, GetParam().location) << module.error().str();
  EXPECT_THAT(module.error().str(), HasSubstr(GetParam().what));
  EXPECT_THAT(module.error().what, HasSubstr("^"));
}

// The body of a function of a tensor, a flag and a list, on line 3 from column 1.
std::string body(const std::string& text) {
  return "def @main[n](%x: Tensor[(n,), f32], %c: Tensor[(), bool], %l: List[Tensor[(n,), f32]]) -> Tensor[(n,), f32] "
         "{\n" +
         text + "\n}\n";
}

INSTANTIATE_TEST_SUITE_P(
    All, LanguageMistake,
    testing::Values(
        Mistake{"incomplete", body("match %l { Cons(%y, Cons(_, _)) => %y, Nil => %x }"), "m.tn:4:1",
                "no arm matches Cons(_, Nil)"},
        Mistake{"incomplete_tuple", body("match (%l, %l) { (Nil, _) => %x, (_, Nil) => %x }"), "m.tn:4:1",
                "no arm matches (Cons(_, _), Cons(_, _))"},
        Mistake{"no_arm", body("match %l { }"), "m.tn:4:1", "no arm matches _"},
        Mistake{"arms_differ", body("if (%c) { %x } else { %c }"), "m.tn:4:1",
                "the second arm must be Tensor[(n,), f32], found Tensor[(), bool]"},
        Mistake{"condition", body("if (%x) { %x } else { %x }"), "m.tn:4:1",
                "the condition must be Tensor[(), bool], found Tensor[(n,), f32]"},
        Mistake{"no_else", body("if (%c) { %x }"), "m.tn:5:1", "expected else"},
        Mistake{"not_a_function", body("%x(%x)"), "m.tn:4:1", "only a function can be called, found Tensor[(n,), f32]"},
        Mistake{"not_a_list", body("match %x { Nil => %x, _ => %x }"), "m.tn:4:1",
                "the matched value must be List[_], found Tensor[(n,), f32]"},
        Mistake{"fields", body("match %l { Nil => %x, Cons(%y) => %y }"), "m.tn:4:23", "Cons has 2 fields, found 1"},
        Mistake{"field_type", body("let %m = Cons(%c, %l); %x"), "m.tn:4:10",
                "Cons: field 1 must be List[Tensor[(), bool]], found List[Tensor[(n,), f32]]"},
        Mistake{"undetermined", body("let %e = Nil; %x"), "m.tn:4:10",
                "the type is not determined: it is List[_] so far"},
        Mistake{"cannot_infer", body("let %f = fn (%y) { relu(%y) }; %x"), "m.tn:4:20",
                "the type of %y cannot be inferred"},
        Mistake{"closure_argument", body("let %f = fn (%y: Tensor[(2,), f32]) { relu(%y) }; %f(%c)"), "m.tn:4:51",
                "argument 0 must be Tensor[(2,), f32], found Tensor[(), bool]"},
        Mistake{"closure_result", body("let %f = fn (%y: Tensor[(n,), f32]) -> Tensor[(), bool] { %y }; %x"),
                "m.tn:4:10", "the closure's result must be Tensor[(), bool]"},
        Mistake{"scope", body("let %y = if (%c) { let %z = relu(%x); %z } else { %x }; %z"), "m.tn:4:57",
                "there is no variable %z"},
        Mistake{"fresh_twice", body("match_cast[n](%x, Tensor[(n,), f32])"), "m.tn:4:12",
                "the dim n is in scope already"},
        Mistake{"never", body("match_cast(match_cast(%x, Tensor[(3,), f32]), Tensor[(4,), f32])"), "m.tn:4:1",
                "Tensor[(3,), f32] can never be Tensor[(4,), f32]"},
        Mistake{"reference", body("read(%x)"), "m.tn:4:1", "the reference must be Ref[_], found Tensor[(n,), f32]"},
        Mistake{"write", body("write(ref(%c), %x); %x"), "m.tn:4:1",
                "the written value must be Tensor[(), bool], found Tensor[(n,), f32]"},
        Mistake{"arguments", body("write(%x); %x"), "m.tn:4:1", "write takes 2 arguments, found 1"},
        Mistake{"no_type", "def @f(%x: Lost[Tensor[(), f32]]) -> Tensor[(), f32] { 0.0f32 }", "m.tn:3:12",
                "there is no type Lost"},
        Mistake{"near_type", "def @f(%x: Lisst[Tensor[(), f32]]) -> Tensor[(), f32] { 0.0f32 }", "m.tn:3:12",
                "did you mean List?"},
        Mistake{"near_tensor", "def @f(%x: Tenosr[(), f32]) -> Tensor[(), f32] { 0.0f32 }", "m.tn:3:12",
                "did you mean Tensor?"},
        Mistake{"near_variable", "def @f[Item](%x: Itme) -> Tensor[(), f32] { 0.0f32 }", "m.tn:3:18",
                "did you mean Item?"},
        Mistake{"near_dtype", "def @f(%x: Tensor[(), f23]) -> Tensor[(), f32] { 0.0f32 }", "m.tn:3:23",
                "did you mean f32?"},
        Mistake{"near_dtype_of_a_literal", body("let %y = 3i63; %x"), "m.tn:4:11", "did you mean i64?"},
        Mistake{"near_dtype_of_a_cast", body("cast(%x, dtype=\"bol\")"), "m.tn:4:1", "did you mean bool?"},
        Mistake{"near_dim", "def @f[rows](%x: Tensor[(row,), f32]) -> Tensor[(), f32] { 0.0f32 }", "m.tn:3:26",
                "did you mean rows?"},
        Mistake{"pad_beyond_its_dtype", body("let %y = pad(3u8, before=[], after=[], value=300); %x"), "m.tn:4:10",
                "pad: value 300 is not representable in u8"},
        Mistake{"pad_with_a_fraction", body("let %y = pad(3i32, before=[], after=[], value=0.5); %x"), "m.tn:4:10",
                "pad: value 0.5 is not representable in i32"},
        Mistake{"type_arguments", "def @f(%x: List) -> Tensor[(), f32] { 0.0f32 }", "m.tn:3:8",
                "List takes 1 type arguments, found 0"},
        Mistake{"two_constructors", "type Other { Nil }", "m.tn:3:14", "there are two constructors Nil"},
        Mistake{"small_name", "type other { Some }", "m.tn:3:6", "other cannot be defined"},
        Mistake{"no_constructor", body("match %l { Nul => %x, _ => %x }"), "m.tn:4:12", "there is no constructor Nul"},
        Mistake{"polymorphic_value", "def @id[A](%x: A) -> A { %x }\n" + body("let %t = (@id, %x); %x"), "m.tn:5:11",
                "@id: no argument determines its type A"},
        Mistake{"parameter_twice", "def @f(%x: Tensor[(), f32], %x: Tensor[(), f32]) -> Tensor[(), f32] { %x }",
                "m.tn:3:29", "%x is defined twice"},
        Mistake{"closure_parameter_twice", body("let %f = fn (%y: Tensor[(), f32], %y: Tensor[(), f32]) { %y }; %x"),
                "m.tn:4:35", "%y is defined twice"},
        Mistake{"pattern_twice", body("match %l { Cons(%y, %y) => %x, Nil => %x }"), "m.tn:4:21",
                "%y is defined twice"},
        Mistake{"undetermined_type_argument", "def @none[A]() -> List[A] { Nil }\n" + body("let %e = @none(); %x"),
                "m.tn:5:10", "@none: its use does not determine its type A"},
        Mistake{"explicit_type_argument", "def @none[A]() -> List[A] { Nil }\n" + body("let %e = @none(); %x"),
                "m.tn:5:10", "state it, as @none[Tensor[(4,), f32]](...)"},
        Mistake{"superfluous_type_arguments", "def @id[A](%x: A) -> A { %x }\n" + body("@id[Tensor[(), f32]](%x)"),
                "m.tn:5:1", "@id takes 0 types, found 1"},
        Mistake{"types_of_a_closure", body("let %f = fn (%y: Tensor[(), f32]) { %y }; %f[Tensor[(), f32]](%x)"),
                "m.tn:4:45", "expected"},
        Mistake{"itself", body("let %f = fn (%y) { %y(%y) }; %x"), "m.tn:4:20", "the callee would be its own argument"},
        Mistake{"literal", body("add(%x, 1)"), "m.tn:4:10", "expected the number's dtype"},
        Mistake{"literal_value", body("add(%x, 300u8)"), "m.tn:4:9", "the value 300 is not representable in u8"},
        Mistake{"literal_beyond_f32", body("add(%x, 1e39f32)"), "m.tn:4:9",
                "the value 1e39 is not representable in f32"},
        Mistake{"literal_beyond_f16", body("add(%x, -65520f16)"), "m.tn:4:9",
                "the value -65520 is not representable in f16"},
        Mistake{"literal_beyond_64_bits", body("add(%x, 184467440737095516160u64)"), "m.tn:4:9", "more than 64 bits"},
        Mistake{"library", "extern @f(Tensor[(), f32]) -> List = \"f\";", "m.tn:3:8", "List takes 1 type arguments"}),
    [](const auto& info) { return info.param.name; });

TEST_F(Language, EveryDtypeHasLiteralsAndConstants) {
  const Module module = read(R"(
const $c: Tensor[(4,), bf16] = [0.1, -inf, nan, 3];
const $u: Tensor[(2,), u64] = [18446744073709551615, 0];
def @main() -> (Tensor[(), u64], Tensor[(), u32], Tensor[(), f16], Tensor[(4,), bf16], Tensor[(), bool],
                Tensor[(), f32], Tensor[(2,), u64]) {
  (18446744073709551615u64, add(4294967295u32, 3u32), 0.1f16 * 3f16, $c + 1bf16,
   equal(nanf64, nanf64), maximum(-inff32, -3.4e38f32), $u / 2u64)
}
)");
  const auto found = run(module, {});
  ASSERT_EQ(found.size(), 7u);
  EXPECT_EQ(found[0].data<uint64_t>()[0], UINT64_MAX);
  EXPECT_EQ(found[1].data<uint32_t>()[0], 2u);
  EXPECT_EQ(found[2].data<runtime::Half>()[0], runtime::Half(static_cast<float>(runtime::Half(0.1)) * 3));
  EXPECT_EQ(found[3].data<runtime::BFloat16>()[3], runtime::BFloat16(4));
  EXPECT_EQ(found[4].data<bool>()[0], false);
  EXPECT_EQ(found[5].data<float>()[0], -3.4e38f);
  EXPECT_EQ(found[6].data<uint64_t>()[0], UINT64_MAX / 2);
  expect_unchanged_by_passes(module, {});
}

TEST_F(Language, ANameMayShadowAnother) {
  const Module module = read(kList + R"(
def @main(%x: Tensor[(), f32], %l: List[Tensor[(), f32]]) -> Tensor[(), f32] {
  let %x = %x + 1f32;
  let %y = if (%x > 0f32) { let %x = %x * 10f32; %x } else { %x };
  let %f = fn (%x: Tensor[(), f32]) { let %y = %x + %y; %y };
  let %z = match %l { Cons(%x, %l) => %f(%x), Nil => %x };
  let %f = %f(%z);
  (%f + %x) + %y
}
)");
  const auto scalar = [](float value) { return Tensor::of<float>({}, std::array{value}); };
  const RunValue empty = RunValue::data(context_.symbol("Nil"), {});
  const auto list = RunValue::data(context_.symbol("Cons"), {RunValue(scalar(100)), empty});
  const auto value = [&](const RunValue& l) {
    auto result = interpret(context_, module, context_.symbol("main"), std::array{RunValue(scalar(1)), l});
    EXPECT_TRUE(result) << result.error().str();
    return result ? result->tensor().data<float>()[0] : 0;
  };
  // x = 2, y = 20; the list's head: z = 100 + 20, f = z + 20; without a head: z = 2, f = 22.
  EXPECT_EQ(value(list), 140 + 2 + 20);
  EXPECT_EQ(value(empty), 22 + 2 + 20);
}

TEST_F(Language, APolymorphicGlobalIsAnArgument) {
  const Module module = read(kList + R"(
def @id[A](%x: A) -> A { %x }
def @total[n](%x: Tensor[(n,), f32]) -> Tensor[(), f32] { sum(%x, axes=[0]) }
def @map[A, B](%f: fn(A) -> B, %l: List[A]) -> List[B] {
  match %l { Nil => Nil, Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)) }
}
def @apply[A, B](%x: A, %f: fn(A) -> B) -> B { %f(%x) }
def @first[n](%l: List[Tensor[(n,), f32]]) -> Tensor[(n,), f32] {
  match %l { Cons(%x, _) => %x, Nil => match_cast(full(shape=[0], value=0.0), Tensor[(n,), f32]) }
}
def @main(%a: Tensor[(3,), f32], %b: Tensor[(3,), f32]) -> (Tensor[(), f32], Tensor[(3,), f32]) {
  let %l = @map(@id, Cons(%a, Cons(%b, Nil)));
  let %t = @map(@total, %l);
  (match %t { Cons(%s, _) => @apply(%s, @id), Nil => 0f32 }, @apply(%l, @first))
}
)");
  const Tensor a = Tensor::of<float>({3}, std::array{1.f, 2.f, 3.f}),
               b = Tensor::of<float>({3}, std::array{5.f, 5.f, 5.f});
  EXPECT_THAT(run(module, {a, b}), ElementsAre(Tensor::of<float>({}, std::array{6.f}), a));
  expect_unchanged_by_passes(module, {a, b});
}

// The type that is declared for a constructed value is that of all its parts, so that its elements may differ in sizes.
TEST_F(Language, AListMayHoldTensorsOfMixedSizes) {
  const Module module = read(kList + R"(
def @total[n](%x: Tensor[(n,), f32]) -> Tensor[(), f32] { sum(%x, axes=[0]) }
def @sums(%l: List[Tensor[(?,), f32]]) -> Tensor[(), f32] {
  match %l { Nil => 0f32, Cons(%x, %rest) => @total(%x) + @sums(%rest) }
}
def @both[n, m](%a: Tensor[(n,), f32], %b: Tensor[(m,), f32]) -> List[Tensor[(?,), f32]] {
  if (sum(%a, axes=[0]) > 0f32) { Cons(%a, Cons(%b, Nil)) } else { Cons(%b, Nil) }
}
def @map[A, B](%f: fn(A) -> B, %l: List[A]) -> List[B] {
  match %l { Nil => Nil, Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)) }
}
def @main(%a: Tensor[(3,), f32], %b: Tensor[(2,), f32]) -> (Tensor[(), f32], Tensor[(), f32], Tensor[(), f32]) {
  let %l: List[Tensor[(?,), f32]] = Cons(%a, Cons(%b, Nil));
  let %s = match @map(@total, %l) { Cons(_, Cons(%s, _)) => %s, _ => 0f32 };
  (@sums(%l), @sums(@both(%a, %b)) + @sums(Cons(%b, Cons(%a, Cons(%b, Nil)))), %s)
}
)");
  const Tensor a = Tensor::of<float>({3}, std::array{1.f, 2.f, 3.f}),
               b = Tensor::of<float>({2}, std::array{10.f, 20.f});
  const auto scalar = [](float value) { return Tensor::of<float>({}, std::array{value}); };
  EXPECT_THAT(run(module, {a, b}), ElementsAre(scalar(36), scalar(102), scalar(30)));
  expect_unchanged_by_passes(module, {a, b});
}

// A call that binds 2*n divides the size, and checks that it is even.
TEST_F(Language, ACallBindsAMultipleOfADim) {
  const Module module = read(R"(
def @pairs[n](%x: Tensor[(2*n,), f32]) -> Tensor[(n, 2), f32] {
  match_cast(reshape(%x, shape=[-1, 2]), Tensor[(n, 2), f32])
}
def @main[m](%x: Tensor[(m,), f32]) -> Tensor[(?, 2), f32] { @pairs(%x) }
)");
  const Tensor even = Tensor::of<float>({4}, std::array{1.f, 2.f, 3.f, 4.f}), odd(DType::kF32, {3});
  EXPECT_THAT(run(module, {even}), ElementsAre(even.reshaped({2, 2})));
  const auto result = interpret(context_, module, context_.symbol("main"), std::array{odd});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().what, HasSubstr("the value is Tensor[(3,), f32], must be Tensor[(2*(m // 2),), f32]"));
  EXPECT_EQ(result.error().where, "m.tn:6:62");
}

// The bound of a function that is called last is checked where it is called.
TEST_F(Language, AViolatedBoundIsLocated) {
  const Module module = read(R"(
def @f[n in 2..4](%x: Tensor[(n,), f32]) -> Tensor[(n,), f32] { %x }
def @main[m](%x: Tensor[(m,), f32]) -> Tensor[(m,), f32] { @f(%x) }
)");
  const auto result = interpret(context_, module, context_.symbol("main"), std::array{Tensor(DType::kF32, {7})});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().where, "m.tn:4:60");
  EXPECT_THAT(result.error().what, HasSubstr("n must be in 2..4"));
}

// 40 lines of pairs are a type of 2^40 leaves in 41 nodes: everything that visits a leaf would not end.
TEST_F(Language, ATypeMaySharePartsExponentially) {
  std::string text =
      "def @pair[A](%x: A) -> (A, A) { (%x, %x) }\ndef @main[n](%x0: Tensor[(n,), f32]) -> Tensor[(n,), f32] {\n";
  for (int i = 1; i <= 40; ++i)
    text += i % 2 ? fmt::format("  let %x{} = (%x{}, %x{});\n", i, i - 1, i - 1)
                  : fmt::format("  let %x{} = @pair(%x{});\n", i, i - 1);
  text +=
      "  let %f = fn (%y) { %y.0 };\n  let %l = Cons(%x40, Nil);\n  let %z = match %l { Cons(%h, _) => %f(%h), Nil => "
      "%x39 };\n";
  std::string last = "%z";
  for (int i = 0; i < 39; ++i) last += ".1";
  const uint64_t before = context_.visits();
  auto module = parse(context_, kHeader + kList + text + "  " + last + "\n}\n", {}, "m.tn");
  ASSERT_TRUE(module) << module.error().str();
  EXPECT_TRUE(verify(context_, *module));
  const Tensor x = Tensor::of<float>({2}, std::array{1.f, 2.f});
  EXPECT_THAT(run(*module, {x}), ElementsAre(x));
  const auto optimized = run_passes(context_, clone(*module), standard_passes(), {.verify = true});
  ASSERT_TRUE(optimized) << optimized.error().str();
  EXPECT_THAT(run(*optimized, {x}), ElementsAre(x));
  EXPECT_LT(context_.visits() - before, 100'000u);
  // The message about such a type is short.
  auto wrong = parse(context_, kHeader + kList + text + "  %x40 + %x40\n}\n", {}, "m.tn");
  ASSERT_FALSE(wrong);
  EXPECT_LT(wrong.error().what.size(), 1'000'000u);
}

TEST_F(Language, ATypeThatIsNestedTooDeeplyIsAnError) {
  std::string text = "def @main(%x0: Tensor[(), f32]) -> Tensor[(), f32] {\n";
  for (int i = 1; i <= 3000; ++i) text += fmt::format("  let %x{} = (%x{},);\n", i, i - 1);
  const auto module = parse(context_, kHeader + text + "  %x0\n}\n", {}, "m.tn");
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().what, HasSubstr("the type is nested more than 2000 deep"));
}

// No n makes 2*n five: the argument is at fault, not the result that follows from it.
TEST_F(Language, AnArgumentThatNoSizeFitsIsReportedBeforeTheResult) {
  const std::string text = R"(
    def @f[n](%x: Tensor[(2*n,), f32]) -> Tensor[(2*n,), f32] { relu(%x) }
    def @main(%x: Tensor[(5,), f32]) -> Tensor[(5,), f32] { @f(%x) }
  )";
  const auto module = parse(context_, kHeader + text, {}, "m.tn");
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().what, HasSubstr("@f: argument 0 must be Tensor[(4,), f32], found Tensor[(5,), f32]"));
}

// 22 columns: without the memory of what is covered, 2^22 sets of rows.
TEST_F(Language, AMatchOfManyColumnsIsChecked) {
  const auto rows = [](int columns, bool last) {
    std::string text, params, subject, any;
    for (int i = 0; i < columns; ++i) {
      params += fmt::format("{}%l{}: List[Tensor[(), f32]]", i ? ", " : "", i);
      subject += fmt::format("{}%l{}", i ? ", " : "", i);
      any += i ? ", _" : "_";
    }
    for (int row = 0; row < columns; ++row) {
      std::string pattern;
      for (int i = 0; i < columns; ++i)
        pattern += std::string(i ? ", " : "") + (i == row ? "Nil" : i == (row + 1) % columns ? "Cons(_, _)" : "_");
      text += fmt::format("    ({}) => {}f32,\n", pattern, row);
    }
    std::string full;
    for (int i = 0; i < columns; ++i) full += i ? ", Nil" : "Nil";
    text += fmt::format("    ({}) => 50f32,\n", full);
    if (last) {
      std::string cons;
      for (int i = 0; i < columns; ++i) cons += i ? ", Cons(_, _)" : "Cons(_, _)";
      text += fmt::format("    ({}) => 60f32,\n", cons);
    }
    return fmt::format("def @main({}) -> Tensor[(), f32] {{\n  match ({}) {{\n{}  }}\n}}\n", params, subject, text);
  };
  const Module module = read(kList + rows(22, true));
  EXPECT_NE(module.function(context_.symbol("main")), nullptr);
  const auto missing = parse(context_, kHeader + kList + rows(22, false), {}, "m.tn");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().what, HasSubstr("no arm matches (Cons(_, _), Cons(_, _)"));
}

// Each example_ of tests/examples/literature.tn computes what it states, also after all passes and when it is read
// again.
TEST_F(Language, TheExamplesOfTheLiteratureComputeWhatTheyState) {
  const std::filesystem::path file = std::filesystem::path(TENON_SOURCE_DIR) / "tests/examples/literature.tn";
  auto module = load(context_, file);
  ASSERT_TRUE(module) << module.error().str();
  ASSERT_TRUE(verify(context_, *module));
  expect_round_trip(*module);
  auto optimized = run_passes(context_, clone(*module), standard_passes(), {.verify = true});
  ASSERT_TRUE(optimized) << optimized.error().str();
  int count = 0;
  for (const auto& [symbol, global] : module->globals) {
    const std::string name(context_.name(symbol));
    if (!name.starts_with("example_")) continue;
    ++count;
    for (const Module* each : {&*module, &*optimized}) {
      const auto pair = interpret(context_, *each, symbol, std::span<const RunValue>());
      ASSERT_TRUE(pair) << name << ": " << pair.error().str();
      EXPECT_EQ(str(context_, pair->fields()[0]), str(context_, pair->fields()[1])) << name;
    }
  }
  EXPECT_GE(count, 30);
}

// A type variable that no argument determines follows from the use of the call, or is stated explicitly.
TEST_F(Language, TheUseDeterminesATypeThatOnlyTheResultHas) {
  const std::string text = kList + R"(
    type Box[A] { Full(A), Empty }
    def @none[A]() -> List[A] { Nil }
    def @pair[A, B](%x: A) -> (List[A], Box[B]) { (Cons(%x, @none()), Empty) }
    def @length[A](%xs: List[A]) -> Tensor[(), i64] {
      match %xs { Nil => 0i64, Cons(_, %rest) => 1i64 + @length(%rest) }
    }
    def @never[A](%x: List[A]) -> A { @never(%x) }
    def @boxed[n](%x: Tensor[(n,), f32]) -> List[Tensor[(n,), f32]] { @none() }
    def @main(%x: Tensor[(2,), f32], %c: Tensor[(), bool]) -> Tensor[(), i64] {
      let %f = fn (%y) { Cons(%y, @none()) };
      let %r = ref(@none());
      let %u = write(%r, Cons(%x, read(%r)));
      let %arm = if (%c) { @none() } else { Cons(1.0f32, Nil) };
      let %late = @pair(%x);
      let %box = match %late.1 { Full(%g) => %g + 1i64, Empty => 5i64 };
      let %e: List[Tensor[(?,), f32]] = @none();
      @length(%f(%x)) + @length(read(%r)) + @length(%arm) + %box + @length(@none[Tensor[(7,), i8]]()) +
        @length(%late.0) + @length(%e) + @length(@boxed(%x))
    }
  )";
  const Module module = read(text);
  const std::string printed = print(context_, module).text;
  EXPECT_THAT(printed, HasSubstr("@none[Tensor[(2,), f32]]()"));
  EXPECT_THAT(printed, HasSubstr("@none[Tensor[(?,), f32]]()"));
  EXPECT_THAT(printed, HasSubstr("@pair[Tensor[(), i64]](%x)"));
  const std::vector<Tensor> inputs{f32({1, 2}), Tensor::of<bool>({}, std::array{false})};
  EXPECT_THAT(run(module, inputs).at(0).data<int64_t>(), ElementsAre(1 + 1 + 1 + 5 + 0 + 1 + 0 + 0));
  expect_unchanged_by_passes(module, inputs);
}

// A result keeps its user-visible name, whatever the passes do with the binding of its value.
TEST_F(Language, ResultsKeepTheirNames) {
  const Module module = read(R"(
    def @main(%x: Tensor[(2,), f32]) -> (Tensor[(2,), f32], Tensor[(2,), f32], Tensor[(2,), f32], Tensor[(2,), f32]) {
      let %t = tanh(%x);
      let %first = identity(%t);
      let %second = identity(%t);
      let %third = identity(%x);
      let %fourth = relu(relu(%x));
      (%first, %second, %third, %fourth)
    }
  )");
  auto after = run_passes(context_, clone(module), standard_passes(), {.verify = true});
  ASSERT_TRUE(after) << after.error().str();
  const std::string text = print(context_, *after).text;
  EXPECT_THAT(text, HasSubstr("let %first: Tensor[(2,), f32] = tanh(%x);"));
  EXPECT_THAT(text, HasSubstr("let %second: Tensor[(2,), f32] = identity(%first);"));
  EXPECT_THAT(text, HasSubstr("let %third: Tensor[(2,), f32] = identity(%x);"));
  EXPECT_THAT(text, HasSubstr("let %fourth: Tensor[(2,), f32] = relu(%x);"));
  expect_unchanged_by_passes(module, {f32({1, -2})});
}

// A text with a few changed bytes is a module that verifies and round-trips, or an error with a location.
TEST_F(Language, ChangedBytesNeverCrash) {
  const std::string text = kHeader + kList + R"(
    def @fold[A, B](%f: fn(B, A) -> B, %start: B, %xs: List[A]) -> B {
      match %xs { Nil => %start, Cons(%x, %rest) => @fold(%f, %f(%start, %x), %rest) }
    }
    def @main[n](%a: Tensor[(n,), f32], %c: Tensor[(), bool]) -> Tensor[(n,), f32] {
      let %cell = ref(%a);
      let %f = fn (%x: Tensor[(n,), f32]) { write(%cell, %x); if (%c) { read(%cell) } else { %x } };
      let %y = match_cast[k](%a, Tensor[(k,), f32]);
      @fold(fn (%p: Tensor[(n,), f32], %q: Tensor[(n,), f32]) { add(%p, %f(%q)) }, %a, Cons(%a, Cons(%a, Nil)))
    })";
  ASSERT_TRUE(parse(context_, text)) << parse(context_, text).error().str();
  uint32_t state = 7;
  auto next = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
  for (int i = 0; i < 3000; ++i) {
    std::string changed = text;
    for (int k = 0; k < 3; ++k) {
      const size_t at = next() % changed.size();
      if (next() % 2) changed.erase(at, next() % 9);
      else changed[at] = text[next() % text.size()];
    }
    auto module = parse(context_, changed);
    if (!module) {
      EXPECT_FALSE(module.error().where.empty()) << changed;
      continue;
    }
    const Status status = verify(context_, *module);
    EXPECT_TRUE(status) << status.error().str() << changed;
    expect_round_trip(*module);
  }
}

// The text could not distinguish another type variable from a dim, and no call could determine it.
TEST_F(Language, ATypeVariableAppearsInAParameterOrTheResult) {
  Module module = read("def @f[A, B](%a: A, %g: fn(A) -> B) -> Ref[A] { ref(%a) }\nextern @l[A](A) -> A = \"l\";\n");
  Module lost = clone(module);
  lost.function(context_.symbol("f"))->params.pop_back();
  Status status = verify(context_, lost);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().str(), HasSubstr("the type variable B appears in no parameter and in no result"));
  std::get<Library>(module.globals.at(context_.symbol("l"))).types.push_back(context_.symbol("C"));
  status = verify(context_, module);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().str(), HasSubstr("the type variable C appears in no parameter and in no result"));
}

}  // namespace
}  // namespace tenon::compiler
