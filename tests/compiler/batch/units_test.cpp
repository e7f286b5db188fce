// Units: which operators of a program are batched together. (tests/compiler/fuzz compares random modules with their
// units.)
#include "compiler/batch/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/module.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/passes.h"

namespace tenon::compiler::batch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// The explanations of the units of a module, without their names.
std::vector<std::string> units_of(Module module, Context& context, std::string_view entry,
                                  const std::vector<bool>& own) {
  const Units units = make_units(context, std::move(module), context.symbol(entry), own);
  const Status verified = verify(context, units.module);
  EXPECT_TRUE(verified) << verified.error().str() << print(context, units.module).text;
  std::vector<std::string> lines = lines_of(explain(context, units));
  for (std::string& line : lines) line.erase(0, line.starts_with('@') ? line.find('(') : 0);
  return lines;
}
std::vector<std::string> units_of(const std::string& text, const std::vector<bool>& own) {
  Context context;
  auto module = parse(context, "#[version = \"1\"]\n" + text, {}, "m.tn");
  if (!module) return {module.error().str()};
  return units_of(std::move(*module), context, "main", own);
}

// A unit a node and one a leaf; the parser of the tree runs at once.
TEST(Units, ATreeLstmHasAUnitForEachCell) {
  Context context;
  auto module = load(context, std::string(TENON_SOURCE_DIR) + "/tests/examples/tree_lstm.tn");
  ASSERT_TRUE(module) << module.error().str();
  auto passed = run_passes(context, std::move(*module), standard_passes());
  ASSERT_TRUE(passed) << passed.error().str();
  EXPECT_THAT(units_of(std::move(*passed), context, "main", {true}),
              testing::UnorderedElementsAre(
                  "(%word: Tensor[(1,), i64]): gather, dense, split, sigmoid, tanh, multiply, sigmoid, tanh, multiply",
                  "(Tensor[(1, 8), f32], Tensor[(1, 8), f32], Tensor[(1, 8), f32], Tensor[(1, 8), f32]): dense, dense, "
                  "add, add, split, sigmoid, tanh, multiply, sigmoid, multiply, add, sigmoid, multiply, add, sigmoid, "
                  "tanh, multiply",
                  "(%codes: Tensor[(n, 1), i64]): gather", "(Tensor[(1, 8), f32]): dense, softmax"));
}

// The products of the inputs need no step before, so that all steps are one batch.
TEST(Units, TheInputProductOfARecurrentLayerIsAUnitOfItsOwn) {
  EXPECT_THAT(units_of(R"(type List[A] { Cons(A, List[A]), Nil }
const $w: Tensor[(2, 2), f32] = [1, 2, 3, 4];
const $u: Tensor[(2, 2), f32] = [4, 3, 2, 1];
def @layer(%xs: List[Tensor[(1, 2), f32]], %state: Tensor[(1, 2), f32]) -> Tensor[(1, 2), f32] {
  match %xs { Cons(%x, %rest) => @layer(%rest, tanh(relu(matmul(%x, $w)) + matmul(%state, $u))), Nil => %state }
}
def @main(%xs: List[Tensor[(1, 2), f32]], %start: Tensor[(1, 2), f32]) { @layer(%xs, %start) })",
                       {true, false}),
              ElementsAre("(%x: Tensor[(1, 2), f32]): matmul, relu",
                          "(%state: Tensor[(1, 2), f32], Tensor[(1, 2), f32]): matmul, add, tanh"));
}

TEST(Units, WhatAllInstancesShareAndWhatControlNeedsStaysOutside) {
  EXPECT_THAT(
      units_of(
          R"(def @main(%x: Tensor[(2, 4), f32], %w: Tensor[(4, 4), f32], %codes: Tensor[(4,), i64], %n: Tensor[(), i64]) {
  let %t = transpose(%w, axes=[1, 0]);
  let %y = matmul(%x, %t);
  let %code = gather(%codes, %n) + 1i64;
  let %confident = max(softmax(%y), axes=[0, 1]) > 0.9f32;
  if (%code > 3i64) { relu(%y) } else { if (%confident) { %y } else { tanh(%y) } }
})",
          {true, false, true, true}),
      ElementsAre("(%y: Tensor[(2, 4), f32]): relu", "(%y: Tensor[(2, 4), f32]): tanh",
                  "(%x: Tensor[(2, 4), f32], shared %t: Tensor[(4, 4), f32]): matmul, softmax, max"));
  EXPECT_THAT(units_of("def @main(%x: Tensor[(4,), f32]) { relu(%x) }", {false}), IsEmpty());
}

TEST(Units, AUnitWithoutABatchedFormSaysWhichOperatorIsTheReason) {
  EXPECT_THAT(units_of("def @main(%x: Tensor[(3, 4), f32], %s: Tensor[(4,), f32]) {\n  tanh(rms_norm(%x, %s))\n}",
                       {true, true}),
              ElementsAre("(%x: Tensor[(3, 4), f32], %s: Tensor[(4,), f32]): rms_norm, tanh",
                          "  not batched: rms_norm is not batched where each instance has its own scale (m.tn:3:8)"));
}

// Rows that a shared matrix multiplies are units of their own, and what mixes rows of one instance is between them.
constexpr char kAttention[] =
    R"(const $w: Tensor[(4, 4), f32] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
def @main[n, t](%x: Tensor[(n, t, 4), f32], %bias: Tensor[(t, 4), f32]) -> Tensor[(n, t, 4), f32] {
  let %q = relu(matmul(%x, $w));
  let %shares = softmax(matmul(%q, transpose(%q, axes=[0, 2, 1])));
  tanh(matmul(matmul(%shares, %q), $w)) + %bias
})";

TEST(Units, RowsOfInstancesOfOtherSizesAreUnitsOfTheirOwn) {
  EXPECT_THAT(
      units_of(kAttention, {true, true}),
      ElementsAre("(%x: Tensor[(n, t, 4), f32]): matmul, relu", "  calls are joined by rows, of any n x t",
                  "(%q: Tensor[(n, t, 4), f32]): transpose, matmul, softmax, matmul",
                  "  calls of equal sizes are joined, others are calls of their own: transpose does not compute each "
                  "row alone (m.tn:5:36)",
                  "(Tensor[(n, t, 4), f32]): matmul, tanh", "  calls are joined by rows, of any n x t",
                  "(Tensor[(n, t, 4), f32], %bias: Tensor[(t, 4), f32]): add",
                  "  calls of equal sizes are joined, others are calls of their own: add does not compute each row "
                  "alone (m.tn:6:41)"));
}

// A layer over a sequence of any length is a unit of its own: its batched function has the lengths of all instances.
TEST(Units, LayersOverSequencesOfOtherLengthsAreJoined) {
  const std::string text = R"(const $w: Tensor[(1, 2, 2), f32] = [1, 2, 3, 4];
const $b: Tensor[(1, 4), f32] = [1, 2, 3, 4];
const $h: Tensor[(1, 1, 2), f32] = [1, 2];
def @main[t](%x: Tensor[(t, 1, 2), f32]) -> Tensor[(t, 1, 1, 2), f32] {
  let %y = rnn(%x, $w, $w, $b, $h);
  tanh(%y.0 + reshape(%y.1, shape=[1, 1, 1, 2]))
})";
  EXPECT_THAT(units_of(text, {true}),
              ElementsAre("(%x: Tensor[(t, 1, 2), f32]): rnn", "  calls are joined as sequences, of any length t",
                          "(Tensor[(1, 1, 2), f32], Tensor[(t, 1, 1, 2), f32]): reshape, add, tanh"));
  Context context;
  auto module = parse(context, "#[version = \"1\"]\n" + text);
  ASSERT_TRUE(module) << module.error().str();
  const Units units = make_units(context, std::move(*module), context.symbol("main"), {true});
  ASSERT_TRUE(units.units[0].batched);
  const Function& batched = *units.module.function(*units.units[0].batched);
  EXPECT_EQ(context.str(batched.type(batched.params.back())), "Tensor[(b,), i64]");
  EXPECT_EQ(context.str(batched.result), "(Tensor[(b, t, 1, 1, 2), f32], Tensor[(b, 1, 1, 2), f32])");
  const Text printed = print(context, units.module);
  const auto again = parse(context, printed.text, printed.side);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(equal(units.module, *again));
  // A sequence that all instances share has one length.
  Context other;
  auto with_state = parse(other, R"(#[version = "1"]
const $w: Tensor[(1, 2, 2), f32] = [1, 2, 3, 4];
const $b: Tensor[(1, 4), f32] = [1, 2, 3, 4];
def @main[t](%x: Tensor[(t, 1, 2), f32], %h: Tensor[(1, 1, 2), f32]) { rnn(%x, $w, $w, $b, %h) })");
  ASSERT_TRUE(with_state) << with_state.error().str();
  const Units shared = make_units(other, std::move(*with_state), other.symbol("main"), {false, true});
  for (const Unit& unit : shared.units) {
    if (!unit.batched) continue;
    const Function& function = *shared.module.function(*unit.batched);
    EXPECT_NE(other.str(function.type(function.params.back())), "Tensor[(b,), i64]");
  }
  // Of a function without a length that differs, there is no such batched function.
  const auto wrong = parse(context, R"(#[version = "1"]
def @f.batched[b](%x: Tensor[(b, 2), f32], %lengths: Tensor[(b,), i64]) -> Tensor[(b, 2), f32] { tanh(%x) }
#[batched = "f.batched"]
def @f(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] { tanh(%x) }
)");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().str(), HasSubstr("its batched function @f.batched must be a function of the module with 1 "
                                             "parameters, or one more with the lengths of sequences"));
}

// Matrices of the rows of all sentences, as quantized layers have them, are rows of the sentences' axes; not so where a
// part of the unit's boundary has only the product, or where another size is computed of the axes.
TEST(Units, RowsThatAReshapeJoinsAreJoinedRows) {
  const auto notes = [](const std::string& body, const std::string& sizes = "(n, t, 2)") {
    Context context;
    auto module = parse(context, R"(#[version = "1"]
const $w: Tensor[(2, 2), f32] = [1, 2, 3, 4];
def @main[n, t](%x: Tensor[)" + sizes +
                                     ", f32]) { " + body + " }");
    EXPECT_TRUE(module) << module.error().str();
    const Units units = make_units(context, std::move(*module), context.symbol("main"), {true});
    std::vector<std::string> notes;
    for (const Unit& unit : units.units) notes.push_back(unit.note);
    return notes;
  };
  const std::string dense = "dense(relu(reshape(%x, zero=1, shape=[n * t, 2])), $w)", joined =
                                                                                          "calls are joined by rows, "
                                                                                          "of any n x t";
  EXPECT_THAT(notes("tanh(reshape(" + dense + ", zero=1, shape=[n, t, 2]))"), ElementsAre(joined));
  EXPECT_THAT(notes("let %y = reshape(" + dense +
                    ", zero=1, shape=[n, t, 2]); let %s = softmax(matmul(%y, "
                    "transpose(%y, axes=[0, 2, 1]))); matmul(matmul(%s, %y), $w)"),
              ElementsAre(joined, testing::HasSubstr("does not compute each row alone"), joined));
  EXPECT_THAT(notes(dense), testing::Not(testing::Contains(joined)));
  EXPECT_THAT(notes("reshape(" + dense + ", zero=1, shape=[t, n, 2])"), testing::Not(testing::Contains(joined)));
  // Calls are joined along the last axis of the rows, which is not one of a constant size.
  const auto ends_in_one = notes("reshape(" + dense + ", zero=1, shape=[n, t, 1, 2])", "(n, t, 1, 2)");
  EXPECT_THAT(ends_in_one, testing::Not(testing::Contains(HasSubstr("joined by rows"))));
  EXPECT_THAT(notes("reshape(" + dense + ", zero=1, shape=[n, 1, t, 2])", "(n, 1, t, 2)"),
              ElementsAre("calls are joined by rows, of any n x 1 x t"));
}

// A batched function that a user wrote has the types of the unit, with the instances' axis, and the lengths of as many.
TEST(Units, TheTypesOfABatchedFunctionAreThoseOfItsUnit) {
  const auto checked = [](const std::string& params, const std::string& result, const std::string& body) {
    Context context;
    const auto module =
        parse(context, "#[version = \"1\"]\ndef @f.batched[b, c, t](" + params + ") -> " + result + " { " + body + R"( }
#[batched = "f.batched"]
def @f[t](%x: Tensor[(t, 2), f32], %y: Tensor[(2,), f32]) -> Tensor[(t, 2), f32] { tanh(%x + %y) }
)");
    return module ? "no error" : module.error().str();
  };
  const std::string x = "%x: Tensor[(b, t, 2), f32]", y = "%y: Tensor[(2,), f32]", r = "Tensor[(b, t, 2), f32]";
  EXPECT_EQ(checked(x + ", " + y, r, "tanh(%x + %y)"), "no error");
  EXPECT_EQ(checked(x + ", " + y + ", %lengths: Tensor[(b,), i64]", r, "tanh(%x + %y)"), "no error");
  EXPECT_THAT(checked(x + ", " + y + ", %lengths: Tensor[(c,), i64]", r, "tanh(%x + %y)"),
              HasSubstr("its batched function @f.batched takes Tensor[(c,), i64] as its last parameter, must be the "
                        "lengths of the instances' sequences"));
  EXPECT_THAT(checked(x + ", " + y + ", %lengths: Tensor[(b,), f32]", r, "tanh(%x + %y)"),
              HasSubstr("takes Tensor[(b,), f32] as its last parameter"));
  EXPECT_THAT(checked(x + ", %y: Tensor[(3,), f32]", r, "tanh(%x)"),
              HasSubstr("its batched function @f.batched takes Tensor[(3,), f32] as parameter 1, the function "
                        "Tensor[(2,), f32]"));
  EXPECT_THAT(checked(x + ", %y: Tensor[(c, 2), f32]", r, "tanh(%x)"),
              HasSubstr("takes Tensor[(c, 2), f32] as parameter 1"));
  EXPECT_THAT(checked("%x: Tensor[(b, t, 2), f64], " + y, "Tensor[(b, t, 2), f64]", "tanh(%x)"),
              HasSubstr("takes Tensor[(b, t, 2), f64] as parameter 0"));
  EXPECT_THAT(checked(x + ", " + y, "Tensor[(b, t, 2), bool]", "greater(%x, %y)"),
              HasSubstr("its batched function @f.batched returns Tensor[(b, t, 2), bool], the function "
                        "Tensor[(t, 2), f32]"));
}

// The module with such units has a text, and bounds of one instance do not bind the rows of all.
TEST(Units, RowsOfAllInstancesAreNotWithinTheBoundsOfOne) {
  Context context;
  auto module = parse(context, R"(#[version = "1"]
const $w: Tensor[(2, 2), f32] = [1, 2, 3, 4];
def @main[t in 1..8](%x: Tensor[(t, 2), f32]) -> Tensor[(t, 2), f32] { matmul(%x, $w) }
)");
  ASSERT_TRUE(module) << module.error().str();
  const Units units = make_units(context, std::move(*module), context.symbol("main"), {true});
  ASSERT_EQ(units.units.size(), 1u);
  const Function& unit = *units.module.function(units.units[0].name);
  EXPECT_EQ(unit.joined_axes, 1u);
  EXPECT_TRUE(unit.bounds.empty());
  const Text text = print(context, units.module);
  EXPECT_THAT(text.text, HasSubstr("#[composite = \"unit\", joined_axes = 1]"));
  const auto again = parse(context, text.text, text.side);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(equal(units.module, *again));
}

TEST(Units, JoinedAxesThatAFunctionDoesNotHaveAreRefused) {
  const auto error_of = [](const std::string& function) {
    Context context;
    const auto module = parse(context, "#[version = \"1\"]\n#[joined_axes = 2]\n" + function, {}, "m.tn");
    return module ? std::string() : module.error().str();
  };
  EXPECT_THAT(error_of("def @f[n](%x: Tensor[(n,), f32]) { relu(%x) }"),
              HasSubstr("its calls are joined along 2 axes, which its result Tensor[(n,), f32] does not have"));
  EXPECT_THAT(error_of("def @f[n](%x: Tensor[(n, 3), f32]) { relu(%x) }"),
              HasSubstr("joined along axis 1 of size 3, which must be 1 or a variable without bounds"));
  EXPECT_THAT(error_of("def @f[n, m in 1..4](%x: Tensor[(n, m), f32]) { relu(%x) }"),
              HasSubstr("joined along axis 1 of size m, which must be 1 or a variable without bounds"));
  EXPECT_EQ(error_of("def @f[n](%x: Tensor[(1, n), f32]) { relu(%x) }"), "");
}

}  // namespace
}  // namespace tenon::compiler::batch
