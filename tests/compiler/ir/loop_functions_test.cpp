// Tests of loop functions as members of a module: text, types of calls, effects, interpretation, passes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "compiler/ir/effects.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/text/format.h"
#include "compiler/ir/verifier.h"
#include "compiler/loop/safety.h"
#include "compiler/loop/text.h"
#include "compiler/passes/pass.h"
#include "support/deep_stack.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kModule = R"(#[version = "1"]

// A banded product, where elements outside of x count as 0.
loop @band[n](%a: Tensor[(n, 3), f32], %x: Tensor[(n,), f32]) -> (%y: Tensor[(n,), f32]) {
  // rows
  for i in (n) parallel {
    for k in (3) {  // the bands
      stage dot(i in (n) at (i), reduce k in (3) at (k)) {
        init {
          %y[i] = f32(0);
        }
        %y[i] = %y[i] + select(index(0) <= index(i + k - 1) and index(i + k - 1) < index(n), %a[i, k] * %x[i + k - 1], f32(0));
      }
    }
  }
}

loop @parts[n, m](%x: Tensor[(n, 2*m), f32]) -> (%low: Tensor[(n, m), f32], %high: Tensor[(n, m), f32]) {
  for i in (n) {
    for j in (m) {
      stage low(i in (n) at (i), j in (m) at (j)) {
        %low[i, j] = min(%x[i, j], %x[i, j + m]);
      }
    }
  }
  for i in (n) {
    for j in (m) {
      stage high(i in (n) at (i), j in (m) at (j)) {
        if (%x[i, j] < %x[i, j + m]) {
          %high[i, j] = %x[i, j + m];
        } else {
          %high[i, j] = %x[i, j];
        }
      }
    }
  }
}

def @main[n](
  %a: Tensor[(n, 3), f32],
  %x: Tensor[(n,), f32],
  %z: Tensor[(n, 4), f32]
) -> (Tensor[(n,), f32], (Tensor[(n, 2), f32], Tensor[(n, 2), f32])) {
  (@band(%a, @band(%a, %x) + 1.0f32), @parts(%z))
}
)";

class LoopFunctions : public testing::Test {
 protected:
  Module read(std::string_view text) {
    auto module = parse(context_, text);
    EXPECT_TRUE(module) << module.error().str();
    return module ? std::move(*module) : Module{};
  }
  std::vector<Tensor> run(const Module& module, const std::vector<Tensor>& inputs) {
    std::vector<RunValue> values(inputs.begin(), inputs.end());
    auto result = interpret(context_, module, context_.symbol("main"), values);
    EXPECT_TRUE(result) << result.error().str();
    std::vector<Tensor> flat;
    const std::function<void(const RunValue&)> add = [&](const RunValue& value) {
      if (value.tensor()) flat.push_back(value.tensor());
      else
        for (const RunValue& field : value.fields()) add(field);
    };
    if (result) add(*result);
    return flat;
  }
  std::string problem(std::string_view text) {
    auto module = parse(context_, text);
    return module ? "" : module.error().str();
  }
  Context context_;
};

const std::vector<Tensor>& inputs() {
  static const auto* const kInputs =
      new std::vector<Tensor>{Tensor::of<float>({2, 3}, std::array<float, 6>{1, 2, 3, 4, 5, 6}),
                              Tensor::of<float>({2}, std::array<float, 2>{1, 10}),
                              Tensor::of<float>({2, 4}, std::array<float, 8>{1, 2, 3, -4, 5, 6, -7, 8})};
  return *kInputs;
}

TEST_F(LoopFunctions, AreInterpretedByTheLoopEvaluator) {
  const auto found = run(read(kModule), inputs());
  ASSERT_EQ(found.size(), 3u);
  // band: (2*1 + 3*10, 4*1 + 5*10) = (32, 54); and again on (33, 55).
  EXPECT_THAT(found[0].data<float>(), ElementsAre(2 * 33 + 3 * 55, 4 * 33 + 5 * 55));
  EXPECT_THAT(found[1].data<float>(), ElementsAre(1, -4, -7, 6));
  EXPECT_THAT(found[2].data<float>(), ElementsAre(3, 2, 5, 8));
}

TEST_F(LoopFunctions, ArePrintedAndReadAgain) {
  const Module module = read(kModule);
  const Text text = print(context_, module);
  EXPECT_TRUE(equal(module, read(text.text))) << text.text;
  EXPECT_EQ(*format(text.text), text.text);
  auto unpacked = from_binary(context_, to_binary(context_, module));
  ASSERT_TRUE(unpacked) << unpacked.error().str();
  EXPECT_TRUE(equal(module, *unpacked));
  // Modules with different bodies are not equal.
  std::string other(kModule);
  other.replace(other.find("j + m])"), 5, "j + 0");
  EXPECT_FALSE(equal(module, read(other)));
}

TEST_F(LoopFunctions, AreFormattedWithTheirComments) {
  std::string long_line(kModule);
  const std::string laid_out = *format(kModule);
  EXPECT_THAT(laid_out, HasSubstr("{  // the bands\n"));
  EXPECT_THAT(laid_out, HasSubstr("  // rows\n  for i in (n) parallel {\n"));
  EXPECT_EQ(*format(laid_out), laid_out);
  std::string crowded(kModule);
  for (size_t at; (at = crowded.find("\n      ")) != std::string::npos;) {
    if (crowded[at - 1] == 's') break;  // a comment ends its line
    crowded.replace(at, 7, " ");
  }
  EXPECT_TRUE(equal(read(laid_out), read(crowded)));
}

TEST_F(LoopFunctions, HaveTheSignatureOfTheirBuffers) {
  const Module module = read(std::string(kModule) + R"(
loop @ragged[n](%lengths: Tensor[(n,), i64], %x: Tensor[(b: n, lengths(b), 4), f32], %s: Tensor[(n,), f32])
    -> (%y: Tensor[(q: n, lengths(q), 4), f32], %z: Tensor[(b: n, lengths(b) + 1), f32]) {
})");
  const auto signature = [&](std::string_view name) {
    const Signature found = signature_of(context_, module.globals.at(context_.symbol(name)));
    return context_.str(context_.function(found.params, found.result));
  };
  EXPECT_EQ(signature("parts"), "fn(Tensor[(n, 2*m), f32]) -> (Tensor[(n, m), f32], Tensor[(n, m), f32])");
  const Signature ragged = signature_of(context_, module.globals.at(context_.symbol("ragged")));
  ASSERT_EQ(ragged.dims.size(), 2u);  // n, and the total number of rows
  EXPECT_EQ(ragged.params[1], ragged.result.tuple()->fields[0]);
  EXPECT_TRUE(ragged.result.tuple()->fields[1].tensor()->dims[0].erased());
}

TEST_F(LoopFunctions, AreFunctionValuesWhereTheirSizesAreConstants) {
  const Module module = read(R"(#[version = "1"]
loop @twice(%x: Tensor[(2,), f32]) -> (%y: Tensor[(2,), f32]) {
  for i in (2) { stage s(i in (2) at (i)) { %y[i] = %x[i] + %x[i]; } }
}
def @apply(%f: fn(Tensor[(2,), f32]) -> Tensor[(2,), f32], %x: Tensor[(2,), f32]) -> Tensor[(2,), f32] { %f(%f(%x)) }
def @main(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] { @apply(@twice, %x) }
)");
  EXPECT_THAT(run(module, {inputs()[1]})[0].data<float>(), ElementsAre(4, 40));
}

TEST_F(LoopFunctions, AreUnchangedByPasses) {
  const Module module = read(kModule);
  auto passed = run_passes(context_, clone(module), standard_passes(), {.verify = true});
  ASSERT_TRUE(passed) << passed.error().str();
  const Symbol band = context_.symbol("band");
  EXPECT_TRUE(passed->loop_function(band) && loop::equal(*passed->loop_function(band), *module.loop_function(band)));
  const auto before = run(module, inputs()), after = run(*passed, inputs());
  EXPECT_EQ(before, after);
  std::string unused(kModule);
  unused.replace(unused.find("@parts(%z)"), 10, "(%z, %z)");
  unused.replace(unused.find("(Tensor[(n, 2), f32], Tensor[(n, 2), f32])"), 42,
                 "(Tensor[(n, 4), f32], Tensor[(n, 4), f32])");
  auto dropped = run_passes(context_, read(unused), standard_passes(), {.verify = true});
  ASSERT_TRUE(dropped) << dropped.error().str();
  EXPECT_FALSE(dropped->loop_function(context_.symbol("parts")));
  EXPECT_TRUE(dropped->loop_function(band));
}

struct BadCall {
  std::string name, call, location, message;
};
void PrintTo(const BadCall& bad, std::ostream* out) { *out << bad.name; }
class BadCalls : public testing::TestWithParam<BadCall> {};

TEST_P(BadCalls, AreErrorsAtTheCall) {
  const std::string text = R"(#[version = "1"]
loop @dense[n, m](%x: Tensor[(n, m), f32], %w: Tensor[(m, 2), f32]) -> (%y: Tensor[(n, 2), f32]) {
  for i in (n) { for j in (2) { stage zero(i in (n) at (i), j in (2) at (j)) { %y[i, j] = f32(0); } } }
}
def @main[k](%a: Tensor[(k, 4), f32], %b: Tensor[(4, 2), f32], %c: Tensor[(5, 2), f32], %i: Tensor[(4, 2), i32]) {
  )" + GetParam().call + "\n}\n";
  Context context;
  const auto module = parse(context, text, {}, "m.tn");
  ASSERT_EQ(module.has_value(), GetParam().message.empty()) << (module ? "" : module.error().str());
  if (module) return;
  EXPECT_THAT(module.error().str(), HasSubstr(GetParam().message));
  EXPECT_THAT(module.error().where, HasSubstr("m.tn:" + GetParam().location));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadCalls,
    testing::Values(
        BadCall{"good", "@dense(%a, %b)", "", ""},
        BadCall{"shape", "@dense(%a, %c)", "6:3", "argument 1 must be Tensor[(4, 2), f32], found Tensor[(5, 2), f32]"},
        BadCall{"dtype", "@dense(%a, %i)", "6:3", "found Tensor[(4, 2), i32]"},
        BadCall{"count", "@dense(%a)", "6:3", "@dense takes 2 arguments, found 1"},
        BadCall{"tuple", "@dense((%a, %a), %b)", "6:3", "@dense: argument 0 must be Tensor"},
        BadCall{"result", "@dense(%a, %b).0", "6:", "there is no field 0"},
        BadCall{"value", "(fn(%f: fn(Tensor[(k, 4), f32]) -> Tensor[(k, 2), f32]) { %f(%a) })(@dense)",
                "6:", "argument 0 must be fn(Tensor[(k, 4), f32]) -> Tensor[(k, 2), f32], found fn(_, _) -> _"},
        BadCall{"unknown", "@dens(%a, %b)", "6:3", "there is no function @dens"}),
    [](const auto& info) { return info.param.name; });

TEST_F(LoopFunctions, MistakesHaveALocation) {
  const auto with = [](std::string_view loop) {
    return "#[version = \"1\"]\n" + std::string(loop) + "\ndef @main(%x: Tensor[(), f32]) { %x }\n";
  };
  const std::vector<std::array<std::string, 3>> cases = {
      {"loop @f(%x: Tensor[(2,), f32]) -> (%y: Tensor[(2,), f32]) { for i in (2) { %y[i] = %x[i]; } }",
       "%y is written outside of every stage", "text:2:6"},
      {"loop @f(%x: Tensor[(2,), f32]) -> (%y: Tensor[(2,), f32]) {\n  for i in (2) {\n    stage s(i in (2) at (i)) { "
       "%y[0] = %x[i]; } } }",
       "no index of the store to %y is determined by the axis 'i'", "text:4:11"},
      {"loop @f(%x: Tensor[(2,), f32]) -> (%y: Tensor[(2,), f32]) { stage s(i in (2) at (0)) { %y[i] = %q[i]; } }",
       "there is no buffer %q in scope", "text:2:"},
      {"loop @f(%x: Tensor[(2,), f32]) -> () { }", "a loop function of a module must have a result", "text:2:6"},
      {"loop @f[n](%x: Tensor[(2,), f32]) -> (%y: Tensor[(n,), f32]) { }", "no parameter determines the dim n",
       "text:2:6"},
      {"loop @f[n in 4..1](%x: Tensor[(n,), f32]) -> (%y: Tensor[(n,), f32]) { }", "the bounds contain no size",
       "text:2:14"},
      {"loop @f(%x: Tensor[(-2,), f32]) -> (%y: Tensor[(2,), f32]) { }", "%x has an axis of negative size", "text:2:6"},
      {"loop @main(%x: Tensor[(2,), f32]) -> (%y: Tensor[(2,), f32]) { }", "@main is defined twice", "text:3:5"},
      {"loop @f(%x: Tensor[(2,), f32]) -> (%y: Tensor[(2,), f32]) {\n  for i in (2) {", "expected a statement",
       "text:4:1"},
      {"loop @f(%x: List[Tensor[(2,), f32]]) -> (%y: Tensor[(2,), f32]) { }", "expected 'Tensor'", "text:2:13"},
      {"#[target = \"accel\"]\nloop @f(%x: Tensor[(2,), f32]) -> (%y: Tensor[(2,), f32]) { }",
       "a loop function has no annotations", "text:2:1"},
  };
  for (const auto& [loop, message, location] : cases) {
    const std::string found = problem(with(loop));
    EXPECT_THAT(found, HasSubstr(message)) << loop;
    EXPECT_THAT(found, HasSubstr(location)) << loop;
  }
  std::string deep = "loop @f(%x: Tensor[(), f32]) -> (%y: Tensor[(), f32]) ";
  for (int i = 0; i < 100000; ++i) deep += "{ if (bool(1)) ";
  EXPECT_THAT(problem(with(deep)), HasSubstr("nested too deeply"));
}

// A loop function that may fail at run time has an effect, so it is not moved, and no native code without checks is
// generated for it.
TEST_F(LoopFunctions, FindsUnprovenObligations) {
  const std::string head =
      "loop @f[n](%x: Tensor[(n, 4), f32], %at: Tensor[(n,), i32]) -> (%y: Tensor[(n, 4), f32]) { ";
  const std::string ij = "for i in (n) { for j in (4) { stage s(i in (n) at (i), j in (4) at (j)) { ";
  const std::string end = " } } }";
  struct Case {
    std::string body, program;
    bool data = false;
  };
  const std::vector<Case> cases = {
      {ij + "%y[i, j] = %x[i, j];" + end, "", false},
      {ij + "%y[i, 3 - j] = %x[i, j];" + end, "it is not proved that every element of %y is written", false},
      {ij + "%y[i, j] = %x[i, j + 1];" + end, "%x[i, j + 1] is inside: its axis 1 has 4 elements", false},
      {ij + "%y[i, j] = %x[i - 1, j];" + end, "%x[i - 1, j] is inside: its axis 0 has n elements", false},
      {ij + "%y[i, j] = select(index(0) < index(i), %x[i - 1, j], f32(0));" + end, "", false},
      {ij + "%y[i, j] = select(index(i) < i64(1), f32(0), %x[i - 1, j]);" + end, "", false},
      {ij + "%y[i, j] = select(not(index(i) == i64(0)), %x[i - 1, j], f32(0));" + end, "%x[i - 1, j] is inside", false},
      {ij + "%y[i, j] = %y[i, j];" + end, "%y[i, j] is written before it is read", false},
      {ij + "if (%x[i, j] < f32(0)) { %y[i, j] = f32(0); }" + end, "every element of %y is written", false},
      {ij + "%y[i, j] = (let p in (n) = i64(%at[i]); %x[p, j]);" + end, "", true},
      {ij + "%y[i, j] = (let p in (n + 1) = i64(%at[i]); %x[p, j]);" + end, "%x[p, j] is inside", true},
      {ij + "%y[i, j] = (let p in (n) = index(n - 1 - i); %x[p, j]);" + end, "", false},
      {ij + "%y[i, j] = f32(%at[i] / i32(3));" + end, "", false},
      {ij + "%y[i, j] = f32(%at[i] / %at[i]);" + end, "", true},
      {ij + "%y[i, j] = f32(i32(%x[i, j]));" + end, "", true},
      // loops that do not cover the domain, or leave it
      {"for i in (n - 1) { for j in (4) { stage s(i in (n) at (i), j in (4) at (j)) { %y[i, j] = f32(0);" + end,
       "every element of %y is written", false},
      {"for i in (n + 1) { for j in (4) { stage s(i in (n) at (i), j in (4) at (j)) { %y[i, j] = f32(0);" + end,
       "the axis 'i' stays in 0 .. n - 1", false},
      {"for o in ((n + 7) // 8) { for i in (8) { for j in (4) { stage s(i in (n) at (8*o + i), j in (4) at (j)) where "
       "(8*o + i) below (n) { %y[i, j] = f32(0);" +
           end + " }",
       "", false},
      {"for o in ((n + 7) // 8) { for i in (8) { for j in (4) { stage s(i in (n) at (8*o + i), j in (4) at (j)) { "
       "%y[i, j] = f32(0);" +
           end + " }",
       "the axis 'i' stays in 0 .. n - 1", false},
      // in two parts
      {"for j in (4) { stage a(j in (4) at (j)) { %y[0, j] = f32(0); } }", "%y[0, j] is inside", false},
      {"for i in (n) { for j in (2) { stage a(i in (n) at (i), j in (2) at (j)) { %y[i, j] = f32(0); } stage b(i in "
       "(n) "
       "at (i), j in (2) at (j)) { %y[i, j + 2] = %x[i, j]; } } }",
       "", false},
      {"for i in (n) { for j in (2) { stage a(i in (n) at (i), j in (2) at (j)) { %y[i, j] = f32(0); } stage b(i in "
       "(n) "
       "at (i), j in (2) at (j)) { %y[i, 3 - j] = f32(0); } } }",
       "every element of %y is written", false},
      // a sum with an initial value
      {ij +
           "%y[i, j] = f32(0); } for k in (3) { stage u(i in (n) at (i), j in (4) at (j), reduce k in (3) at (k)) { "
           "%y[i, j] = %y[i, j] + %x[i, k];" +
           end + " }",
       "", false},
      {"for i in (n) { for j in (4) { for k in (3) { stage u(i in (n) at (i), j in (4) at (j), reduce k in (3) at (k)) "
       "{ "
       "init { %y[i, j] = f32(0); } %y[i, j] = %y[i, j] + %x[i, k];" +
           end + " }",
       "", false},
      {"for i in (n) { for j in (4) { for k in (2) { stage u(i in (n) at (i), j in (4) at (j), reduce k in (3) at (k + "
       "1)) { init { %y[i, j] = f32(0); } %y[i, j] = %y[i, j] + %x[i, k];" +
           end + " }",
       "the reduction begins where all of its axes are 0", false},
      {"for i in (n) { for j in (4) { for k in (n) { stage u(i in (n) at (i), j in (4) at (j), reduce k in (n) at (k)) "
       "{ "
       "init { %y[i, j] = f32(0); } %y[i, j] = %y[i, j] + %x[k, j];" +
           end + " }",
       "", false},  // n > 0 wherever the stage runs
      // steps
      {"for t in (n) { for j in (4) { stage u(scan t in (n) at (t), j in (4) at (j)) { %y[t, j] = select(index(0) < "
       "index(t), %y[t - 1, j], f32(0)) + %x[t, j];" +
           end,
       "", false},
      {"for t in (n) { for j in (4) { stage u(scan t in (n) at (t), j in (4) at (j)) { %y[t, j] = select(index(1) < "
       "index(t), %y[t - 2, 3 - j], f32(0)) + %x[t, j];" +
           end,
       "", false},
      {"for j in (4) { for t in (n) { stage u(scan t in (n) at (t), j in (4) at (j)) { %y[t, j] = select(index(0) < "
       "index(t), %y[t - 1, 3 - j], f32(0)) + %x[t, j];" +
           end,
       "is written before it is read", false},
      {"call f(%x) -> (%y);", "", false},
  };
  for (const Case& test_case : cases) {
    const auto function = loop::parse(context_, head + test_case.body + " }", "f.tn");
    ASSERT_TRUE(function) << function.error().str() << test_case.body;
    const loop::UnprovenObligations found = loop::unproven_obligations(context_, *function);
    EXPECT_EQ(found.program.has_value(), !test_case.program.empty())
        << test_case.body << (found.program ? found.program->str() : "");
    if (found.program) {
      EXPECT_THAT(found.program->what, HasSubstr(test_case.program)) << test_case.body;
    }
    EXPECT_EQ(found.data, test_case.data) << test_case.body;
    Module module;
    module.globals.emplace(function->name, *function);
    EXPECT_EQ(Effects(context_, module).of_function(function->name), found.none()    ? Effect::kNone
                                                                     : found.library ? Effect::kState
                                                                                     : Effect::kCheck);
  }
}

// The bound [n in 4..] proves that the accesses are in range; without it, the function would need a check.
TEST_F(LoopFunctions, HaveBoundsThatAreCheckedAndUsedInProofs) {
  const auto text = [](std::string_view bounds, std::string_view size, std::string_view of = "[m]") {
    return fmt::format(R"(#[version = "1"]
loop @head[{}](%x: Tensor[(n,), f32]) -> (%y: Tensor[(4,), f32]) {{
  for i in (4) {{
    stage s(i in (4) at (i)) {{
      %y[i] = %x[i];
    }}
  }}
}}

def @main{}(%x: Tensor[({},), f32]) -> Tensor[(4,), f32] {{
  @head(%x)
}}
)",
                       bounds, of, size);
  };
  const Module module = read(text("n in 4..6", "m"));
  EXPECT_FALSE(loop::unproven_obligations(context_, *module.loop_function(context_.symbol("head"))).program);
  EXPECT_TRUE(
      loop::unproven_obligations(context_, *read(text("n", "m")).loop_function(context_.symbol("head"))).program);
  EXPECT_EQ(Effects(context_, module).of_function(context_.symbol("head")), Effect::kCheck);
  const Text printed = print(context_, module);
  EXPECT_THAT(printed.text, HasSubstr("loop @head[n in 4..6]("));
  EXPECT_TRUE(equal(module, read(printed.text)));
  EXPECT_FALSE(equal(module, read(text("n in 4..7", "m"))));
  EXPECT_EQ(run(module, {Tensor(DType::kF32, {5})}).size(), 1u);
  const auto problem_of = [&](int64_t size) {
    auto result =
        interpret(context_, module, context_.symbol("main"), std::vector<RunValue>{Tensor(DType::kF32, {size})});
    return result ? "" : result.error().str();
  };
  EXPECT_THAT(problem_of(3), HasSubstr("n is 3, must be in 4..6"));
  EXPECT_THAT(problem_of(7), HasSubstr("n is 7, must be in 4..6"));
  EXPECT_THAT(problem(text("n in 4..6", "3", "")), HasSubstr("@head: its n is 3, must be in 4..6"));
  EXPECT_EQ(problem(text("n in 4..6", "m", "[m in 4..5]")), "");
  EXPECT_THAT(problem(text("n in 4..6", "m", "[m in 7..]")), HasSubstr("@head: its n is m, must be in 4..6"));
  EXPECT_THAT(problem(text("n in 6..4", "m")), HasSubstr("the bounds contain no size"));
}

TEST_F(LoopFunctions, CallLibrariesOfTheInterpreter) {
  const Module module = read(R"(#[version = "1"]
loop @twice[n](%x: Tensor[(n,), f32]) -> (%y: Tensor[(n,), f32], %z: Tensor[(n,), f32]) {
  alloc %t: Tensor[(n,), f32] {
    call doubled(%x) -> (%t);
    call both(%t, %x) -> (%y, %z);
  }
}

def @main(%x: Tensor[(2,), f32]) -> (Tensor[(2,), f32], Tensor[(2,), f32]) {
  @twice(%x)
}
)");
  const auto doubled = [](std::span<const RunValue> args) -> Expected<RunValue> {
    Tensor result = args[0].tensor().clone();
    for (float& value : result.data<float>()) value *= 2;
    return RunValue(result);
  };
  const auto both = [](std::span<const RunValue> args) -> Expected<RunValue> {
    return RunValue::tuple({args[0], args[1]});
  };
  const Libraries libraries{{"doubled", doubled}, {"both", both}};
  const std::vector<RunValue> inputs{Tensor::of<float>({2}, std::array<float, 2>{3, 4})};
  const Symbol main = context_.symbol("main");
  const auto result = interpret(context_, module, main, inputs, {}, libraries);
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_THAT(result->fields()[0].tensor().data<float>(), ElementsAre(6, 8));
  EXPECT_THAT(result->fields()[1].tensor().data<float>(), ElementsAre(3, 4));
  const auto without = interpret(context_, module, main, inputs);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().str(), HasSubstr("the library function 'doubled' does not exist (in @twice)"));
  const auto wrong = interpret(context_, module, main, inputs, {}, {{"doubled", doubled}, {"both", doubled}});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().str(),
              HasSubstr("the results of the library function \"both\" do not have its declared type"));
}

TEST_F(LoopFunctions, FailWithAMessage) {
  const Module module = read(R"(#[version = "1"]
loop @pick[n](%x: Tensor[(n,), f32], %at: Tensor[(), i64]) -> (%y: Tensor[(), f32]) {
  stage s() { %y[] = (let p in (n) = %at[]; %x[p]); }
}
def @main[n](%x: Tensor[(n,), f32], %at: Tensor[(), i64]) -> Tensor[(), f32] {
  @pick(%x, %at)
}
)");
  const auto index = [](int64_t value) { return Tensor::of<int64_t>({}, std::array{value}); };
  EXPECT_THAT(run(module, {inputs()[1], index(1)})[0].data<float>(), ElementsAre(10));
  const auto failed = interpret(context_, module, context_.symbol("main"), std::vector{inputs()[1], index(2)});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().str(), HasSubstr("the index 2 is not in 0 .. 1 (in @pick)"));
  EXPECT_THAT(failed.error().where, HasSubstr("text:6:"));
}

// An index with a symbolic weight: it is inside, it determines its axes, and every element is written.
TEST_F(LoopFunctions, MayStoreAtAFlatIndex) {
  const auto outer = [](std::string_view size, std::string_view index, std::string_view columns) {
    return fmt::format(R"(#[version = "1"]
loop @outer[n, m](%a: Tensor[(n,), f32], %b: Tensor[(m,), f32]) -> (%y: Tensor[({},), f32]) {{
  for i in (n) {{
    for j in ({}) {{
      stage s(i in (n) at (i), j in ({}) at (j)) {{ %y[{}] = %a[i] * %b[j]; }}
    }}
  }}
}}
def @main[n, m](%a: Tensor[(n,), f32], %b: Tensor[(m,), f32]) -> Tensor[({},), f32] {{ @outer(%a, %b) }}
)",
                       size, columns, columns, index, size);
  };
  const Module module = read(outer("n*m", "i*m + j", "m"));
  const auto unproven = loop::unproven_obligations(context_, *module.loop_function(context_.symbol("outer")));
  EXPECT_FALSE(unproven.program) << unproven.program->str();
  const Tensor a = Tensor::of<float>({2}, std::array{1.f, 2.f}),
               b = Tensor::of<float>({3}, std::array{1.f, 10.f, 100.f});
  EXPECT_THAT(run(module, {a, b})[0].data<float>(), ElementsAre(1, 10, 100, 2, 20, 200));
  // A weight that is not the number of columns.
  EXPECT_THAT(problem(outer("n*m", "i*n + j", "m")), HasSubstr("is determined by the axis"));
  const Module sparse = read(outer("n*m + 1", "i*m + j", "m"));
  EXPECT_THAT(loop::unproven_obligations(context_, *sparse.loop_function(context_.symbol("outer"))).program->what,
              HasSubstr("not proved that every element of %y is written"));
}

// The checks of an expression are linear in its terms, whose questions are mostly the same.
TEST_F(LoopFunctions, MayHaveThousandsOfTerms) {
  const auto sum = [](int terms) {
    std::string text =
        "#[version = \"1\"]\nloop @f[n](%x: Tensor[(n,), f32]) -> (%y: Tensor[(n,), f32]) {\n"
        "  for i in (n) { stage s(i in (n) at (i)) { %y[i] = %x[i]";
    for (int i = 1; i < terms; ++i) text += " + %x[i]";
    return text + "; } }\n}\ndef @main[n](%x: Tensor[(n,), f32]) -> Tensor[(n,), f32] { @f(%x) }\n";
  };
  with_deep_stack([&] {
    const Module module = read(sum(10000));
    EXPECT_THAT(run(module, {Tensor::of<float>({2}, std::array{1.f, 2.f})})[0].data<float>(),
                ElementsAre(10000, 20000));
    EXPECT_THAT(problem(sum(60000)), HasSubstr("the expression has more than 10000 operations"));
  });
}

}  // namespace
}  // namespace tenon::compiler
