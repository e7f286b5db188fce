// Units: which operators of a program are batched together, and that the program computes the same by them.
#include "compiler/batch/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/fuzz/generator.h"
#include "compiler/fuzz/inputs.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/passes.h"
#include "tests/compiler/batch/stacked.h"
#include "tests/rounds.h"
#include "tests/seed.h"

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

// The module of units computes what the module computes, and each batched unit has in its rows what the calls of the
// unit compute, of one run or of several, bit for bit.
TEST(Units, RandomModulesComputeTheSameByUnitsAndBatches) {
  int64_t equal = 0, batches = 0;
  for (int64_t i = 0; i < rounds(400); ++i) {
    const uint64_t seed = test_seed(6) + static_cast<uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Context context;
    Module module = fuzz::random_module(context, seed, {.size = 12});
    const Symbol name = context.symbol("main");
    const Function main = *module.function(name);
    Random random(seed);
    std::vector<bool> own;
    for (size_t k = 0; k < main.params.size(); ++k) own.push_back(random.chance(70));
    const auto inputs = fuzz::random_inputs(context, module, main, random);
    if (!inputs) continue;
    const Limits limits{.steps = 20'000, .bytes = 1 << 20};
    const Libraries libraries{{"fuzz.log", [](std::span<const RunValue> args) { return args[0]; }},
                              {"fuzz.tick", [](std::span<const RunValue> args) { return args[0]; }}};
    const auto before = interpret(context, module, name, *inputs, {}, libraries, limits);
    const Units units = make_units(context, std::move(module), name, own);
    const Status verified = verify(context, units.module);
    ASSERT_TRUE(verified) << verified.error().str() << print(context, units.module).text;
    // The arguments of the calls of each unit.
    std::map<const Function*, std::vector<std::vector<RunValue>>> calls;
    const auto observe = [&](const Function& function, VarId var, const RunValue& value) {
      if (function.composite != "unit" || index(var) >= function.params.size()) return;
      if (index(var) == 0) calls[&function].emplace_back();
      calls[&function].back().push_back(value);
    };
    const auto after = interpret(context, units.module, name, *inputs, observe, libraries, limits);
    ASSERT_EQ(before.has_value(), after.has_value()) << (before ? after.error() : before.error()).str();
    if (!before) continue;
    EXPECT_EQ(str(context, *before), str(context, *after)) << print(context, units.module).text;
    ++equal;
    for (const Unit& unit : units.units) {
      if (!unit.batched) continue;
      std::map<std::string, std::vector<std::vector<RunValue>>> by_shapes;
      for (const auto& args : calls[units.module.function(unit.name)]) {
        std::string key;
        for (size_t k = 0; k < args.size(); ++k) key += unit.own[k] ? shapes_of(args[k]) : str(context, args[k]);
        by_shapes[key].push_back(args);
      }
      for (auto& [key, instances] : by_shapes) {
        if (instances.size() > 5) instances.resize(5);
        std::vector<RunValue> results;
        for (const auto& args : instances) {
          auto result = interpret(context, units.module, unit.name, args);
          ASSERT_TRUE(result) << result.error().str();
          results.push_back(std::move(*result));
        }
        std::vector<RunValue> batch;
        for (size_t k = 0; k < unit.own.size(); ++k) {
          std::vector<RunValue> values;
          for (const auto& args : instances) values.push_back(args[k]);
          batch.push_back(unit.own[k] ? stacked_all(values) : values[0]);
        }
        const auto all = interpret(context, units.module, *unit.batched, batch);
        ASSERT_TRUE(all) << all.error().str() << print(context, units.module).text;
        std::vector<bool> own_results = unit.own_results;
        EXPECT_TRUE(equal_bits(*all, stacked(results, own_results))) << print(context, units.module).text;
        batches += instances.size() > 1;
      }
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(equal, rounds(400) / 2);
  EXPECT_GT(batches, rounds(400) / 100);
}

}  // namespace
}  // namespace tenon::compiler::batch
