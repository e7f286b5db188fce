// Each pass in text form: a module before and after it, and that both mean the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/passes.h"
#include "tests/compiler/passes/networks.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

struct Case {
  std::string name, pass, before, after;
  runtime::Shape input = {};  // of @main's parameter, where it is one tensor to try
  float tolerance = 0;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Rewriting : public testing::TestWithParam<Case> {};

TEST_P(Rewriting, IsAsWritten) {
  const Case& c = GetParam();
  Context context;
  const auto read = [&](const std::string& text) {
    auto module = parse(context, "#[version = \"1\"]\n" + text);
    EXPECT_TRUE(module) << module.error().str();
    return module ? std::move(*module) : Module{};
  };
  const Module before = read(c.before), after = read(c.after);
  auto passes = find_passes(std::vector{c.pass});
  ASSERT_TRUE(passes) << passes.error().str();
  auto result = run_passes(context, clone(before), *passes, {.verify = true});
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_TRUE(equal(*result, after)) << "found\n"
                                     << print(context, *result).text << "wanted\n"
                                     << print(context, after).text;
  if (c.input.empty()) return;
  std::mt19937 random(test_seed(1));
  const std::vector inputs{random_tensor(random, c.input)};
  auto x = interpret(context, before, context.symbol("main"), inputs);
  auto y = interpret(context, *result, context.symbol("main"), inputs);
  ASSERT_TRUE(x && y) << (x ? y : x).error().str();
  auto a = x->at(0).data<float>(), b = y->at(0).data<float>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], c.tolerance * std::max(1.0f, std::abs(a[i])));
}

const std::string kVector = "Tensor[(N,), f32]", kMap = "Tensor[(N, 2, 4, 4), f32]",
                  kTransposedMap = "Tensor[(N, 4, 4, 2), f32]";
std::string main_of(const std::string& type, const std::string& body) {
  return "def @main[N](%x: " + type + ") -> " + type + " { " + body + " }\n";
}
const std::string kList = "type List { Nil, Cons(Tensor[(), f32], List) }\n";

// A loop over the rows of %x; the state is a row.
const std::string kLoop =
    "  let %loop = fn(%i: Tensor[(), i64], %s: Tensor[(1, 2), f32]) -> Tensor[(1, 2), f32] { if (%i < N) { "
    "%loop(%i + 1i64, ";
std::string loop_over_rows(const std::string& product) {
  return "const $w: Tensor[(2, 3), f32] = [1, 2, 3, 4, 5, 6];\nconst $s: Tensor[(1, 2), f32] = [0, 0.5];\n"
         "def @main[N](%x: Tensor[(N, 3), f32]) -> Tensor[(1, 2), f32] {\n" +
         kLoop + "tanh(%s + " + product + ")) } else { %s } };\n  %loop(0i64, $s)\n}\n";
}

const std::vector<Case> kCases{
    // Layers as an accelerator has them.
    {"AProductOfRowsIsADenseLayer",
     "canonical_layers",
     "const $w: Tensor[(3, 2), f32] = [1, 2, 3, 4, 5, 6];\nconst $b: Tensor[(2,), f32] = [7, 8];\n"
     "def @main(%x: Tensor[(2, 4, 3), f32]) -> Tensor[(2, 4, 2), f32] { relu(add($b, matmul(%x, $w))) }\n",
     "const $w: Tensor[(2, 3), f32] = [1, 3, 5, 2, 4, 6];\nconst $b: Tensor[(2,), f32] = [7, 8];\n"
     "def @main(%x: Tensor[(2, 4, 3), f32]) -> Tensor[(2, 4, 2), f32] {\n"
     "reshape(relu(bias_add(dense(reshape(%x, shape=[8, 3], zero=1), $w), $b)), shape=[2, 4, 2], zero=1) }\n",
     {2, 4, 3},
     1e-5F},
    {"AConvolutionOfOneAxisHasMapsOfHeight1",
     "canonical_layers",
     "const $w: Tensor[(2, 1, 3), f32] = [1, 2, 3, 4, 5, 6];\nconst $b: Tensor[(2,), f32] = [7, 8];\n"
     "def @main(%x: Tensor[(1, 2, 8), f32]) -> Tensor[(1, 2, 4), f32] {\n"
     "relu(bias_add(conv1d(%x, $w, strides=[2], padding=[1, 0], groups=2), $b)) }\n",
     "const $w: Tensor[(2, 1, 1, 3), f32] = [1, 2, 3, 4, 5, 6];\nconst $b: Tensor[(2,), f32] = [7, 8];\n"
     "def @main(%x: Tensor[(1, 2, 8), f32]) -> Tensor[(1, 2, 4), f32] {\n"
     "reshape(relu(bias_add(conv2d(reshape(%x, shape=[1, 2, 1, 8], zero=1), $w, strides=[1, 2], "
     "padding=[0, 1, 0, 0], groups=2), $b)), shape=[1, 2, 4], zero=1) }\n",
     {1, 2, 8},
     1e-5F},
    {"AProductOfUnknownRowsIsADenseLayer",
     "canonical_layers",
     "const $w: Tensor[(3, 2), f32] = [1, 2, 3, 4, 5, 6];\nconst $b: Tensor[(2,), f32] = [7, 8];\n"
     "def @main[N, T](%x: Tensor[(N, T, 3), f32]) -> Tensor[(N, T, 2), f32] { relu(matmul(%x, $w) + $b) }\n",
     "const $w: Tensor[(2, 3), f32] = [1, 3, 5, 2, 4, 6];\nconst $b: Tensor[(2,), f32] = [7, 8];\n"
     "def @main[N, T](%x: Tensor[(N, T, 3), f32]) -> Tensor[(N, T, 2), f32] { let %r = reshape(%x, shape=[N * T, 3], "
     "zero=1); reshape(relu(bias_add(dense(%r, $w), $b)), shape=[N, T, 2], zero=1) }\n",
     {2, 4, 3},
     1e-5F},
    // Inlining.
    {"ACallInOnePlace",
     "inline",
     "def @f[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { let %a = relu(%y); match_cast[k](%a, Tensor[(k,), f32]); "
     "%a }\n" +
         main_of(kVector, "tanh(@f(sigmoid(%x)))"),
     main_of(kVector, "let %s = sigmoid(%x); let %a = relu(%s); match_cast[k_1](%a, Tensor[(k_1,), f32]); tanh(%a)"),
     {3}},
    {"ASmallFunctionInTwo",
     "inline",
     "def @f[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { relu(%y) }\n" + main_of(kVector, "@f(tanh(@f(%x)))"),
     main_of(kVector, "relu(tanh(relu(%x)))"),
     {3}},
    {"AFunctionThatCallsOneThatCalls",
     "inline",
     "def @g[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { sigmoid(%y) }\n"
     "def @f[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { relu(@g(%y)) }\n" +
         main_of(kVector, "@f(%x)"),
     main_of(kVector, "relu(sigmoid(%x))"),
     {3}},
    {"APolymorphicFunction",
     "inline",
     "def @twice[A](%f: fn(A) -> A, %a: A) -> A { %f(%f(%a)) }\n" +
         main_of(kVector, "let %f = fn (%y: " + kVector + ") { relu(%y) }; @twice(%f, %x)"),
     main_of(kVector, "relu(relu(%x))"),
     {3}},
    {"RecursionStays", "inline",
     "def @even(%n: Tensor[(), f32]) -> Tensor[(), f32] { @odd(%n) }\n"
     "def @odd(%n: Tensor[(), f32]) -> Tensor[(), f32] { @even(%n) }\n"
     "def @start(%n: Tensor[(), f32]) -> Tensor[(), f32] { @even(relu(%n)) }\n"
     "def @main(%x: Tensor[(), f32]) -> Tensor[(), f32] { @start(%x) }\n",
     "def @even(%n: Tensor[(), f32]) -> Tensor[(), f32] { @odd(%n) }\n"
     "def @odd(%n: Tensor[(), f32]) -> Tensor[(), f32] { @even(%n) }\n"
     "def @main(%x: Tensor[(), f32]) -> Tensor[(), f32] { @even(relu(%x)) }\n"},
    {"ARecursiveClosureStays",
     "inline",
     main_of(kVector, "let %f = fn (%y: " + kVector + ") -> " + kVector + " { %f(relu(%y)) }; %x"),
     main_of(kVector, "let %f = fn (%y: " + kVector + ") -> " + kVector + " { %f(relu(%y)) }; %x"),
     {3}},
    {"EffectsStayInOrder", "inline",
     "def @add_to(%r: Ref[Tensor[(), f32]], %d: Tensor[(), f32]) -> () { write(%r, add(read(%r), %d)) }\n"
     "def @main(%x: Tensor[(), f32]) -> Tensor[(), f32] { let %r = ref(%x); @add_to(%r, 2f32); let %o = read(%r); "
     "@add_to(%r, %o); read(%r) }\n",
     "def @main(%x: Tensor[(), f32]) -> Tensor[(), f32] { let %r = ref(%x); let %a = read(%r); write(%r, add(%a, "
     "2f32)); "
     "let %o = read(%r); let %b = read(%r); write(%r, add(%b, %o)); read(%r) }\n"},
    {"KernelsStay",
     "inline",
     "#[composite = \"fused\"] def @k[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { relu(%y) }\n" +
         main_of(kVector, "@k(%x)"),
     "#[composite = \"fused\"] def @k[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { relu(%y) }\n" +
         main_of(kVector, "@k(%x)"),
     {3}},

    // Common subexpressions.
    {"OnceInsteadOfTwice",
     "cse",
     main_of(kVector, "add(relu(tanh(%x)), relu(tanh(%x)))"),
     main_of(kVector, "let %r = relu(tanh(%x)); add(%r, %r)"),
     {3}},
    {"AttributesTellApart",
     "cse",
     main_of(kVector, "add(clip(%x, min=0, max=1), clip(%x, min=-0.0, max=1))"),
     main_of(kVector, "add(clip(%x, min=0, max=1), clip(%x, min=-0.0, max=1))"),
     {3}},
    {"EqualConstants",
     "cse",
     "const $0: Tensor[(1,), f32] = [2];\nconst $1: Tensor[(1,), f32] = [2];\n" +
         main_of(kVector, "add(multiply(%x, $0), multiply(%x, $1))"),
     "const $0: Tensor[(1,), f32] = [2];\n" + main_of(kVector, "let %m = multiply(%x, $0); add(%m, %m)"),
     {3}},
    {"ResultsKeepTheirNames", "cse",
     "def @main(%x: Tensor[(3,), f32]) -> (Tensor[(3,), f32], Tensor[(3,), f32]) { (tanh(relu(%x)), tanh(relu(%x))) "
     "}\n",
     "def @main(%x: Tensor[(3,), f32]) -> (Tensor[(3,), f32], Tensor[(3,), f32]) { let %r = relu(%x); (tanh(%r), "
     "tanh(%r)) }\n"},
    {"AroundAnArmButNotOutOfIt", "cse",
     "def @main(%x: Tensor[(), f32], %c: Tensor[(), bool]) -> Tensor[(), f32] { let %a = relu(%x); let %b = if (%c) { "
     "tanh(relu(%x)) } else { sigmoid(%x) }; add(add(%a, %b), sigmoid(%x)) }\n",
     "def @main(%x: Tensor[(), f32], %c: Tensor[(), bool]) -> Tensor[(), f32] { let %a = relu(%x); let %b = if (%c) { "
     "tanh(%a) } else { sigmoid(%x) }; add(add(%a, %b), sigmoid(%x)) }\n"},
    {"ReadsAndChecksStay", "cse",
     "def @main(%r: Ref[Tensor[(), f32]]) -> Tensor[(), f32] { let %a = read(%r); write(%r, relu(%a)); add(%a, "
     "read(%r)) }\n",
     "def @main(%r: Ref[Tensor[(), f32]]) -> Tensor[(), f32] { let %a = read(%r); write(%r, relu(%a)); add(%a, "
     "read(%r)) }\n"},
    {"CallsOfPureFunctions",
     "cse",
     "def @f[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { relu(%y) }\n" + main_of(kVector, "add(@f(%x), @f(%x))"),
     "def @f[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { relu(%y) }\n" +
         main_of(kVector, "let %f = @f(%x); add(%f, %f)"),
     {3}},

    // Factors per channel. The weights' rows are outputs, their columns inputs.
    {"BackwardIntoRowsThroughAReluAndASum",
     "fold_scale_axis",
     "const $w: Tensor[(2, 2, 1, 1), f32] = [1, 2, 3, 4];\nconst $b: Tensor[(2,), f32] = [1, 2];\n"
     "const $s: Tensor[(2, 1, 1), f32] = [2, 4];\n" +
         main_of(kMap, "multiply(relu(add(bias_add(conv2d(%x, $w), $b), conv2d(%x, $w))), $s)"),
     "const $w: Tensor[(2, 2, 1, 1), f32] = [2, 4, 12, 16];\nconst $b: Tensor[(2,), f32] = [2, 8];\n" +
         main_of(kMap, "relu(add(bias_add(conv2d(%x, $w), $b), conv2d(%x, $w)))"),
     {2, 2, 4, 4},
     1e-6f},
    {"ForwardIntoColumnsThroughAShift",
     "fold_scale_axis",
     "const $w: Tensor[(2, 2, 1, 1), f32] = [1, 2, 3, 4];\nconst $t: Tensor[(2, 1, 1), f32] = [1, 2];\n"
     "const $s: Tensor[(2, 1, 1), f32] = [2, 4];\n" +
         main_of(kMap,
                 "let %a = relu(add(multiply(%x, $s), $t)); add(conv2d(%a, $w), conv2d(max_pool2d(%a, kernel=[1, 1]), "
                 "$w))"),
     "const $w: Tensor[(2, 2, 1, 1), f32] = [2, 8, 6, 16];\nconst $t: Tensor[(2, 1, 1), f32] = [0.5, 0.5];\n" +
         main_of(kMap, "let %a = relu(add(%x, $t)); add(conv2d(%a, $w), conv2d(max_pool2d(%a, kernel=[1, 1]), $w))"),
     {2, 2, 4, 4},
     1e-6f},
    {"ANegativeFactorDoesNotPassARelu",
     "fold_scale_axis",
     "const $w: Tensor[(2, 2, 1, 1), f32] = [1, 2, 3, 4];\nconst $s: Tensor[(2, 1, 1), f32] = [2, -4];\n" +
         main_of(kMap, "multiply(relu(conv2d(%x, $w)), $s)"),
     "const $w: Tensor[(2, 2, 1, 1), f32] = [1, 2, 3, 4];\nconst $s: Tensor[(2, 1, 1), f32] = [2, -4];\n" +
         main_of(kMap, "multiply(relu(conv2d(%x, $w)), $s)"),
     {2, 2, 4, 4}},
    {"AValueThatIsSeenElsewhereStays",
     "fold_scale_axis",
     "const $w: Tensor[(2, 2, 1, 1), f32] = [1, 2, 3, 4];\nconst $s: Tensor[(2, 1, 1), f32] = [2, 4];\n" +
         main_of(kMap, "let %m = multiply(%x, $s); let %c = conv2d(%m, $w); add(%m, %c)"),
     "const $w: Tensor[(2, 2, 1, 1), f32] = [1, 2, 3, 4];\nconst $s: Tensor[(2, 1, 1), f32] = [2, 4];\n" +
         main_of(kMap, "let %m = multiply(%x, $s); let %c = conv2d(%m, $w); add(%m, %c)"),
     {2, 2, 4, 4}},
    {"GroupsHaveTheirOwnColumns",
     "fold_scale_axis",
     "const $w: Tensor[(2, 1, 1, 1), f32] = [3, 5];\nconst $s: Tensor[(2, 1, 1), f32] = [2, 4];\n" +
         main_of(kMap, "conv2d(multiply(%x, $s), $w, groups=2)"),
     "const $w: Tensor[(2, 1, 1, 1), f32] = [6, 20];\n" + main_of(kMap, "conv2d(%x, $w, groups=2)"),
     {2, 2, 4, 4},
     1e-6f},
    {"ThroughAFlattenIntoADenseLayer",
     "fold_scale_axis",
     "const $w: Tensor[(1, 4), f32] = [1, 2, 3, 4];\nconst $s: Tensor[(2, 1, 1), f32] = [2, 4];\n"
     "def @main[N](%x: Tensor[(N, 2, 2, 1), f32]) -> Tensor[(N, 1), f32] { dense(flatten(multiply(%x, $s)), $w) }\n",
     "const $w: Tensor[(1, 4), f32] = [2, 4, 12, 16];\n"
     "def @main[N](%x: Tensor[(N, 2, 2, 1), f32]) -> Tensor[(N, 1), f32] { dense(flatten(%x), $w) }\n",
     {3, 2, 2, 1},
     1e-6f},

    // Layouts.
    {"OppositeTransposesMeet",
     "cancel_layouts",
     "const $0: Tensor[(2,), f32] = [1, 2];\n" +
         main_of(kMap, "let %t = transpose(%x, axes=[0, 2, 3, 1]); transpose(add(relu(%t), $0), axes=[0, 3, 1, 2])"),
     "const $0: Tensor[(1, 2, 1, 1), f32] = [1, 2];\n" + main_of(kMap, "add(relu(%x), $0)"),
     {2, 2, 4, 4}},
    {"TwoOfAKindBecomeOne", "cancel_layouts",
     "def @main[N](%x: " + kMap + ", %y: " + kMap + ") -> " + kTransposedMap +
         " { relu(add(transpose(%x, axes=[0, 2, 3, 1]), transpose(%y, axes=[0, 2, 3, 1]))) }\n",
     "def @main[N](%x: " + kMap + ", %y: " + kMap + ") -> " + kTransposedMap +
         " { transpose(relu(add(%x, %y)), axes=[0, 2, 3, 1]) }\n"},
    {"AConcatenationTurnsItsAxis", "cancel_layouts",
     "def @main[N](%x: " + kMap + ", %y: " + kMap +
         ") -> Tensor[(N, 4, 4, 4), f32] { transpose(concat(transpose(%x, "
         "axes=[0, 2, 3, 1]), transpose(%y, axes=[0, 2, 3, 1]), axis=3), axes=[0, 3, 1, 2]) }\n",
     "def @main[N](%x: " + kMap + ", %y: " + kMap + ") -> Tensor[(N, 4, 4, 4), f32] { concat(%x, %y, axis=1) }\n"},
    {"ATransposeThatIsNeededElsewhereStays", "cancel_layouts",
     "def @main[N](%x: " + kMap + ") -> (" + kTransposedMap + ", " + kTransposedMap +
         ") { let %t = transpose(%x, axes=[0, 2, 3, 1]); (%t, relu(%t)) }\n",
     "def @main[N](%x: " + kMap + ") -> (" + kTransposedMap + ", " + kTransposedMap +
         ") { let %t = transpose(%x, axes=[0, 2, 3, 1]); (%t, relu(%t)) }\n"},
    {"AnOperatorWithAnAxisStays", "cancel_layouts",
     "const $0: Tensor[(4,), f32] = [1, 2, 3, 4];\n"
     "def @main[N](%x: " +
         kMap + ") -> " + kTransposedMap + " { bias_add(transpose(%x, axes=[0, 2, 3, 1]), $0) }\n",
     "const $0: Tensor[(4,), f32] = [1, 2, 3, 4];\n"
     "def @main[N](%x: " +
         kMap + ") -> " + kTransposedMap + " { bias_add(transpose(%x, axes=[0, 2, 3, 1]), $0) }\n"},
    {"BlockedLayoutsGoBackOnce",
     "cancel_layouts",
     "def @main[N](%x: Tensor[(N, 1, 4, 4, 16), f32]) -> Tensor[(N, 1, 4, 4, 16), f32] { "
     "layout_transform(sigmoid(layout_transform(%x, from=\"NCHW16c\", to=\"NCHW\", channels=16)), from=\"NCHW\", "
     "to=\"NCHW16c\") }\n",
     "def @main[N](%x: Tensor[(N, 1, 4, 4, 16), f32]) -> Tensor[(N, 1, 4, 4, 16), f32] { sigmoid(%x) }\n",
     {2, 1, 4, 4, 16}},

    // Loops.
    {"ProductsOfRowsLeaveTheLoop",
     "hoist_rows",
     loop_over_rows("dense(reshape(gather(%x, %i), shape=[1, 3]), $w)"),
     "const $w: Tensor[(2, 3), f32] = [1, 2, 3, 4, 5, 6];\nconst $s: Tensor[(1, 2), f32] = [0, 0.5];\n"
     "def @main[N](%x: Tensor[(N, 3), f32]) -> Tensor[(1, 2), f32] {\n"
     "  let %y = reshape(dense(reshape(%x, shape=[N, 3], zero=1), $w), shape=[N, 1, 2], zero=1);\n" +
         kLoop + "tanh(%s + gather(%y, %i))) } else { %s } };\n  %loop(0i64, $s)\n}\n",
     {5, 3}},
    {"ProductsOfRowsThatAreNotCountedStay", "hoist_rows",
     loop_over_rows("dense(reshape(gather(%x, floor_divide(%i, 2i64)), shape=[1, 3]), $w)"),
     loop_over_rows("dense(reshape(gather(%x, floor_divide(%i, 2i64)), shape=[1, 3]), $w)")},
    {"ProductsWithAMatrixOfTheLoopStay", "hoist_rows",
     loop_over_rows(
         "matmul(reshape(gather(%x, %i), shape=[1, 3]), broadcast_to(cast(%i, dtype=\"f32\"), shape=[3, 2]))"),
     loop_over_rows(
         "matmul(reshape(gather(%x, %i), shape=[1, 3]), broadcast_to(cast(%i, dtype=\"f32\"), shape=[3, 2]))")},

    // Kernels.
    {"PartsOfASplitAreSlices",
     "slice_splits",
     "def @main[N](%x: Tensor[(N, 6), f32]) -> Tensor[(N, 2), f32] { let %p = split(%x, sizes=[2, 2, 2], axis=-1); "
     "%p.0 * "
     "tanh(%p.2) }\n",
     "def @main[N](%x: Tensor[(N, 6), f32]) -> Tensor[(N, 2), f32] { slice(%x, begin=[0, 0], end=[9223372036854775807, "
     "2], "
     "step=[1, 1]) * tanh(slice(%x, begin=[0, 4], end=[9223372036854775807, 6], step=[1, 1])) }\n",
     {3, 6}},
    {"ASplitOfAnUnknownAxisStays", "slice_splits",
     "def @main[N](%x: Tensor[(2*N,), f32]) -> (Tensor[(N,), f32], Tensor[(N,), f32]) { split(%x, sizes=[N, N]) }\n",
     "def @main[N](%x: Tensor[(2*N,), f32]) -> (Tensor[(N,), f32], Tensor[(N,), f32]) { split(%x, sizes=[N, N]) }\n"},

    {"EachContractionWidensItsBytes", "copy_widenings",
     "const $0: Tensor[(), i32] = [3];\nconst $1: Tensor[(2, 4), i32] = [1, 2, 3, 4, 5, 6, 7, 8];\n"
     "def @main(%x: Tensor[(3, 4), u8]) -> (Tensor[(3, 2), i32], Tensor[(3, 2), i32]) { "
     "let %c = cast(%x, dtype=\"i32\") - $0; (dense(%c, $1), dense(%c, $1)) }\n",
     "const $0: Tensor[(), i32] = [3];\nconst $1: Tensor[(2, 4), i32] = [1, 2, 3, 4, 5, 6, 7, 8];\n"
     "def @main(%x: Tensor[(3, 4), u8]) -> (Tensor[(3, 2), i32], Tensor[(3, 2), i32]) { "
     "(dense(cast(%x, dtype=\"i32\") - $0, $1), dense(cast(%x, dtype=\"i32\") - $0, $1)) }\n"},
    {"WideIntegersHaveOneCast", "copy_widenings",
     "const $0: Tensor[(2, 4), i32] = [1, 2, 3, 4, 5, 6, 7, 8];\n"
     "def @main(%x: Tensor[(3, 4), i64]) -> (Tensor[(3, 2), i32], Tensor[(3, 2), i32]) { "
     "let %c = cast(%x, dtype=\"i32\"); (dense(%c, $0), dense(%c, $0)) }\n",
     "const $0: Tensor[(2, 4), i32] = [1, 2, 3, 4, 5, 6, 7, 8];\n"
     "def @main(%x: Tensor[(3, 4), i64]) -> (Tensor[(3, 2), i32], Tensor[(3, 2), i32]) { "
     "let %c = cast(%x, dtype=\"i32\"); (dense(%c, $0), dense(%c, $0)) }\n"},

    // Algebra.
    {"NeutralElements",
     "simplify",
     "const $0: Tensor[(1,), f32] = [-0.0];\nconst $1: Tensor[(), f32] = [1];\n" +
         main_of(kVector, "divide(multiply($1, subtract(add(%x, $0), 0.0f32)), $1)"),
     main_of(kVector, "%x"),
     {3}},
    {"ZeroIsNotNeutralForMinusZero",
     "simplify",
     main_of(kVector, "divide(%x, add(%x, 0.0f32))"),
     main_of(kVector, "divide(%x, add(%x, 0.0f32))"),
     {3}},
    {"WhatEnlargesIsNotNeutral",
     "simplify",
     "const $0: Tensor[(2, 1), f32] = [1, 1];\n"
     "def @main[N](%x: Tensor[(N,), f32]) -> Tensor[(2, N), f32] { multiply(%x, $0) }\n",
     "const $0: Tensor[(2, 1), f32] = [1, 1];\n"
     "def @main[N](%x: Tensor[(N,), f32]) -> Tensor[(2, N), f32] { multiply(%x, $0) }\n",
     {3}},
    {"AConstantIsKeptForAllUsesOfItsVariable", "simplify",
     "const $0: Tensor[(2, 2), f32] = [1, 2, 3, 4];\n"
     "def @main(%x: Tensor[(3, 2), f32]) -> (Tensor[(3, 2), f32], Tensor[(2, 2), f32]) { let %w = identity($0); "
     "(matmul(%x, %w), %w * 2.0f32) }\n",
     "const $0: Tensor[(2, 2), f32] = [1, 3, 2, 4];\nconst $1: Tensor[(2, 2), f32] = [1, 2, 3, 4];\n"
     "def @main(%x: Tensor[(3, 2), f32]) -> (Tensor[(3, 2), f32], Tensor[(2, 2), f32]) { "
     "(dense(%x, $0), $1 * 2.0f32) }\n"},
    {"InsideArmsAndClosures", "simplify",
     kList +
         "def @main(%l: List) -> Tensor[(), f32] { let %f = fn (%y: Tensor[(), f32]) { relu(relu(%y)) }; match %l { "
         "Nil => %f(1f32), Cons(%h, _) => { let %t = (%h, tanh(%h)); identity(%t.1) } } }\n",
     kList + "def @main(%l: List) -> Tensor[(), f32] { let %f = fn (%y: Tensor[(), f32]) { relu(%y) }; match %l { "
             "Nil => %f(1f32), Cons(%h, _) => tanh(%h) } }\n"},

    // Dead code.
    {"UnreachableFunctions",
     "dead_code",
     "def @f[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { @g(%y) }\n"
     "def @g[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { @f(%y) }\n"
     "def @h[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { relu(%y) }\n" +
         main_of(kVector, "@h(%x)"),
     "def @h[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { relu(%y) }\n" + main_of(kVector, "@h(%x)"),
     {3}},
    {"ACollectionOfFunctions", "dead_code",
     "def @h[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { tanh(%y); relu(%y) }\n",
     "def @h[n](%y: Tensor[(n,), f32]) -> Tensor[(n,), f32] { relu(%y) }\n"},
};

INSTANTIATE_TEST_SUITE_P(All, Rewriting, testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tenon::compiler
