// The generator of random modules, its checks and its shrinking.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/fuzz/campaign.h"
#include "compiler/fuzz/partitions.h"
#include "compiler/fuzz/shrink.h"
#include "compiler/fuzz/strip.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/partition/partition.h"
#include "tests/rounds.h"

namespace tenon::compiler::fuzz {
namespace {

using testing::HasSubstr;

CampaignOptions options(uint64_t seed, int64_t count) {
  CampaignOptions options;
  options.seed = seed;
  options.count = count;
  options.oracle.passes = all_passes();
  options.directory = testing::TempDir() + "ir_fuzz_test";
  return options;
}

constexpr int64_t kModules = kSanitized ? 30 : 60;  // the bounds below need thirty

TEST(IrFuzz, ThePromisesOfEachModuleHold) {
  const auto result = campaign(options(100'000, kModules));
  EXPECT_FALSE(result.failure) << result.failure->report;
  const Counts& counts = result.counts;
  EXPECT_EQ(counts.modules, kModules);
  EXPECT_GT(counts.runs, kModules * 9 / 10);
  EXPECT_LT(counts.endless, kModules / 20);
  EXPECT_GT(counts.rejected, kModules * 4);
  EXPECT_GT(counts.accepted, kModules / 24);
  // Every kind of value but derivatives, which are expanded first, and nearly every operator.
  const Context context;
  EXPECT_EQ(counts.values.size(), std::variant_size_v<Value> - 1);
  EXPECT_LT(result.uncovered.size(), context.operators().size() / 5) << testing::PrintToString(result.uncovered);
}

TEST(IrFuzz, DerivativesAgreeWithCentralDifferences) {
  CampaignOptions derivatives = options(70'000, rounds(60));
  derivatives.generator.floats = runtime::DType::kF64;
  derivatives.generator.derivable = true;
  derivatives.oracle.gradients = true;
  derivatives.oracle.passes.clear();
  const auto result = campaign(derivatives);
  EXPECT_FALSE(result.failure) << result.failure->report;
  EXPECT_GT(result.counts.derivatives, rounds(60) / 10);
  EXPECT_LT(result.counts.kinks, rounds(60) / 5);
}

TEST(IrFuzz, BudgetsOfMemoryChangeNoBit) {
  CampaignOptions budgets = options(150'000, rounds(25));
  budgets.oracle = {.passes = {}, .pipeline = false, .text = false, .batch = false, .budgets = 3, .mutants = 0};
  const auto result = campaign(budgets);
  EXPECT_FALSE(result.failure) << result.failure->report;
  EXPECT_GT(result.counts.budgeted, rounds(25) / 2);
}

TEST(IrFuzz, BatchedUnitsEqualTheirCallsBitForBit) {
  CampaignOptions batches = options(110'000, rounds(400));
  batches.generator.size = 12;
  batches.oracle = {.passes = {}, .pipeline = false, .text = false, .machine = false, .mutants = 0};
  const auto result = campaign(batches);
  EXPECT_FALSE(result.failure) << result.failure->report;
  EXPECT_GT(result.counts.units, rounds(400));
  EXPECT_GT(result.counts.batches, rounds(400) / 40);
  EXPECT_GT(result.counts.joined, rounds(400));
}

TEST(IrFuzz, PartitioningKeepsTheMeaning) {
  CampaignOptions regions = options(9000, rounds(60));
  regions.oracle = {.passes = {random_partition()}, .pipeline = false, .text = false, .machine = false, .mutants = 0};
  const auto result = campaign(regions);
  EXPECT_FALSE(result.failure) << result.failure->report;
  EXPECT_GT(result.counts.changed, rounds(60) / 2);
}

TEST(IrFuzz, NativeKernelsComputeTheSame) {
  CampaignOptions native = options(5000, rounds(12));
  native.oracle = {.passes = {}, .pipeline = false, .text = false, .machine = false, .native = 3, .mutants = 0};
  const auto result = campaign(native);
  EXPECT_FALSE(result.failure) << result.failure->report;
  EXPECT_GT(result.counts.native, 0);
  EXPECT_LE(result.counts.native, rounds(12) / 3 + 1);
}

TEST(IrFuzz, GraphsContainOnlyOperators) {
  CampaignOptions graphs = options(7, 60);
  graphs.generator.control = false;
  const auto result = campaign(graphs);
  EXPECT_FALSE(result.failure) << result.failure->report;
  for (const auto& [kind, count] : result.counts.values) {
    EXPECT_TRUE(kind == "apply" || kind == "tuple" || kind == "project") << kind;
  }
}

TEST(IrFuzz, ASeedIsAModule) {
  Context a, b;
  // The hash of a text pins the generator: it changes where the language, an operator or the generator does.
  EXPECT_EQ(print(a, random_module(a, 42)).text, print(b, random_module(b, 42)).text);
  EXPECT_NE(print(a, random_module(a, 42)).text, print(b, random_module(b, 43)).text);
}

TEST(IrFuzz, VariablesTakeTheNamesOfOthers) {
  const std::string text =
      "def @main(%x: Tensor[(1,), f32]) -> Tensor[(1,), f32] {\n"
      "  let %a: Tensor[(1,), f32] = relu(%x);\n"
      "  let %b: Tensor[(1,), f32] = %a + %a;\n"
      "  %b % %x\n"
      "}\n";
  int changed = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    const std::string edited = with_shadowing(text, random);
    // %a is used up where %b begins; %x is not.
    if (edited == text) continue;
    ++changed;
    EXPECT_THAT(edited, HasSubstr("  let %a: Tensor[(1,), f32] = %a + %a;\n  %a % %x\n"));
  }
  EXPECT_GT(changed, 0);
  EXPECT_LT(changed, 20);
}

// A wrong pass: it replaces products by sums.
Expected<Module> broken(Context& context, Module module) {
  return rewrite(context, std::move(module), [&](Builder&, Binding& binding) -> Expected<std::optional<Atom>> {
    auto* apply = std::get_if<Apply>(&binding.value);
    if (apply && apply->op->is(ops::kMultiply)) apply->op = &context.op(ops::kAdd);
    return std::nullopt;
  });
}

TEST(IrFuzz, AWrongPassIsFoundAndTheModuleShrunk) {
  CampaignOptions wrong = options(1, 100);
  wrong.oracle.passes = {{"broken", "", broken}};
  const auto result = campaign(wrong);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->violation.check, "pass broken");
  EXPECT_THAT(result.failure->report, HasSubstr("again: tenon fuzz ir --file"));
  EXPECT_THAT(result.failure->text, testing::AnyOf(HasSubstr("multiply("), HasSubstr(" * ")));
  const auto lines = std::ranges::count(result.failure->text, '\n');
  EXPECT_LT(lines, 25) << result.failure->text;
  // The written file fails in the same way.
  Context context;
  auto module = load(context, result.failure->file);
  ASSERT_TRUE(module) << module.error().str();
  wrong.seed = result.failure->seed;
  Counts counts;
  const auto again = replay(context, *module, wrong, counts);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->check, "pass broken");
}

// A wrong pass: it drops unused bindings, with effects or without.
Expected<Module> forgetful(Context&, Module module) {
  for_each_function(module, [&](Symbol, Function& function) {
    const auto uses = use_counts(function);
    std::erase_if(function.body.bindings, [&](const Binding& binding) {
      return uses[index(binding.var)] == 0 && std::holds_alternative<Call>(binding.value);
    });
  });
  return module;
}
Expected<Module> careless(Context&, Module module) {
  for_each_function(module, [&](Symbol, Function& function) {
    std::erase_if(function.body.bindings,
                  [&](const Binding& binding) { return std::holds_alternative<WriteReference>(binding.value); });
  });
  return module;
}

TEST(IrFuzz, EffectsAreSeen) {
  for (auto pass : {forgetful, careless}) {
    CampaignOptions wrong = options(1, 1000);
    wrong.oracle = {.passes = {{"wrong", "", pass}}, .pipeline = false, .text = false, .mutants = 0};
    wrong.shrink_budget = 0;
    const auto result = campaign(wrong);
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->violation.check, "pass wrong");
  }
}

TEST(IrFuzz, AnnotationsMayBeOmitted) {
  const std::string text = "let %f: fn((A, B), C) -> D = fn (%x: Tensor[(n, 2), f32], %y: A) -> (A, B) {\n";
  EXPECT_EQ(without_annotations(text, true), "let %f = fn (%x, %y) {\n");
  EXPECT_EQ(without_annotations(text, false), "let %f = fn (%x: Tensor[(n, 2), f32], %y: A) -> (A, B) {\n");
}

// Shrunk modules of earlier failures, each of which broke a promise.
constexpr std::string_view kFound[] = {
    // inline: with the size of the call the check in the callee can never hold.
    R"(
def @f[n](%a: Tensor[(3, n), i32]) -> Tensor[(3, 3), i32] { match_cast(%a, Tensor[(3, 3), i32]) }
def @main(%x: Tensor[(3, 1), i32]) -> Tensor[(3, 3), i32] { @f(%x) })",
    // Reading: a type argument inside a field's tuple keeps its `?`.
    R"(
type T[A] { C(A, (A,)) }
def @main(%x: Tensor[(4,), f64]) -> Tensor[(4,), f64] {
  let %a = match_cast(%x, Tensor[(?,), f64]);
  let %b: (Tensor[(?,), f64],) = (%a,);
  let %c: T[Tensor[(?,), f64]] = C(%a, %b);
  %x
})",
};

TEST(IrFuzz, EarlierFailuresStayFixed) {
  for (std::string_view text : kFound) {
    Context context;
    auto module = parse(context, std::string("#[version = \"1\"]\n") + std::string(text));
    ASSERT_TRUE(module) << module.error().str();
    Counts counts;
    const auto violation = replay(context, *module, options(1, 1), counts);
    EXPECT_FALSE(violation) << text << "\n" << violation->check << ": " << violation->problem.str();
  }
}

}  // namespace
}  // namespace tenon::compiler::fuzz
