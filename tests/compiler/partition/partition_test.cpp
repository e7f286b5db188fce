// Bring your own code generator, on a page: a target that takes additions and multiplications (`toy_target`), and what
// partitioning makes of functions with it.
#include "compiler/partition/partition.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <string>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/operator.h"
#include "compiler/partition/target_record.h"

namespace tenon::compiler {
namespace {

// The whole record of a target: patterns with a predicate, and a code generator.
Target toy_target() {
  Target target;
  target.name = "toy";
  target.documentation = "adds and multiplies, but never by a constant";
  target.patterns = {
      {"toy.multiply_add", op(ops::kAdd, {op(ops::kMultiply, {any(), any()}), any()}), {}},
      {"toy.add", op(ops::kAdd, {any(), any()}), {}},
      {"toy.multiply", op(ops::kMultiply, {any(), any()}),
       [](Context&, const Module&, const Function& function, const Match& match) -> Status {
         if (!std::holds_alternative<ConstId>(match.apply(function, ops::kMultiply).args[1])) return {};
         return error("the second factor is a constant");
       }},
  };
  target.generate = [](Context& context, const Module&, Symbol name, const Function&) -> Expected<RegionKernel> {
    return runtime::AcceleratorProgram{.name = std::string(context.name(name)),
                                       .config = {},
                                       .profile = {},
                                       .instructions = {},
                                       .constants = {},
                                       .workspace_bytes = 0,
                                       .inputs = {},
                                       .outputs = {},
                                       .layers = {},
                                       .notes = {},
                                       .probes = {}};
  };
  return target;
}

class PartitionTest : public testing::Test {
 protected:
  Atom param(const char* name) {
    return builder_.param(context_.tensor(std::vector<int64_t>{2, 3}, DType::kF32), name);
  }
  Atom apply(const char* op, Atoms args) { return *builder_.apply(op, std::move(args)); }
  Atom number(float value) { return builder_.constant<float>({1}, {value}); }

  // Finishes the function, partitions it, and holds its meaning against that before.
  std::vector<Placement> partition_main(Atom result, std::vector<Target> targets = {toy_target()},
                                        const PartitionOptions& options = {}) {
    builder_.finish(result);
    module_.globals.emplace(main_, std::move(function_));
    std::vector<runtime::Tensor> inputs;
    for (size_t i = 0; i < module_.function(main_)->params.size(); ++i) {
      inputs.push_back(
          runtime::Tensor::of<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6.5f + static_cast<float>(i)}));
    }
    const auto before = interpret(context_, module_, main_, std::span<const runtime::Tensor>(inputs));
    EXPECT_TRUE(before) << before.error().str();
    auto placements = partition(context_, module_, main_, targets, options);
    EXPECT_TRUE(placements) << placements.error().str();
    const auto after = interpret(context_, module_, main_, std::span<const runtime::Tensor>(inputs));
    EXPECT_TRUE(after) << after.error().str();
    EXPECT_EQ(*before, *after);
    return *placements;
  }
  int regions() const {
    int count = 0;
    for (const auto& [name, global] : module_.globals) {
      const auto& f = std::get<Function>(global);
      count += !f.target.empty() && f.composite.empty();
    }
    return count;
  }

  Context context_;
  Module module_;
  Function function_;
  Builder builder_{context_, module_, function_};
  Symbol main_ = context_.symbol("main");
};

TEST_F(PartitionTest, EarlierRowsWinAndNeighboursBecomeOneRegion) {
  const Atom x = param("x"), y = param("y");
  const Atom fused = apply("add", {apply("multiply", {x, y}), y});
  const auto placements = partition_main(apply("add", {fused, x}));
  ASSERT_EQ(placements.size(), 3u);
  EXPECT_EQ(placements[0].composite, "toy.multiply_add");
  EXPECT_EQ(placements[1].composite, "toy.multiply_add");
  EXPECT_EQ(placements[2].composite, "toy.add");
  EXPECT_EQ(regions(), 1);
}

TEST_F(PartitionTest, AValueWithAUserOutsideIsNotFusedAway) {
  const Atom x = param("x"), y = param("y");
  const Atom product = apply("multiply", {x, y});
  const Atom sum = apply("add", {product, y});
  const auto placements = partition_main(apply("subtract", {sum, product}));
  EXPECT_EQ(placements[0].composite, "toy.multiply");
  EXPECT_EQ(placements[1].composite, "toy.add");
  EXPECT_EQ(placements[2].target, "");
  EXPECT_EQ(regions(), 1);  // with two results
}

TEST_F(PartitionTest, AnUnsupportedOperatorInBetweenSeparatesRegions) {
  const Atom x = param("x"), y = param("y");
  const Atom sum = apply("add", {x, y});
  const Atom foreign = apply("relu", {sum});
  const auto placements = partition_main(apply("add", {sum, foreign}));
  EXPECT_EQ(regions(), 2);
  EXPECT_EQ(placements[1].reason, "toy has no pattern with relu");
}

TEST_F(PartitionTest, ThePredicatesReasonIsToldToPeople) {
  const Atom x = param("x");
  const auto placements = partition_main(apply("multiply", {x, number(2)}));
  EXPECT_EQ(placements[0].target, "");
  EXPECT_EQ(placements[0].reason, "toy.multiply: the second factor is a constant");
  EXPECT_NE(explain(module_, placements).find("the second factor is a constant"), std::string::npos);
  EXPECT_EQ(regions(), 0);
}

TEST_F(PartitionTest, RegionsGrowOnlyAsFarAsTheTargetSaysTheyFit) {
  Target target = toy_target();
  std::set<std::string> asked;
  target.fits = [&](Context& context, const Module&, const Function& region) -> Status {
    std::string calls;
    for (const Binding& binding : region.body.bindings)
      calls += fmt::format("@{} ", context.name(std::get<Symbol>(std::get<Call>(binding.value).callee)));
    EXPECT_TRUE(asked.insert(calls).second) << calls << "is asked about again";
    if (region.params.size() <= 3) return {};
    return error("too many values");
  };
  Atom sum = param("x0");
  for (int i = 1; i < 6; ++i) sum = apply("add", {sum, param(fmt::format("x{}", i).c_str())});
  partition_main(sum, {target});
  EXPECT_EQ(regions(), 3);  // 3 values each: x0 x1 x2, then a sum and two more
}

TEST_F(PartitionTest, WithoutTargetsAllStaysOnTheCpu) {
  const Atom x = param("x");
  const auto placements = partition_main(apply("add", {x, x}), {});
  EXPECT_EQ(placements[0].target, "");
  EXPECT_EQ(placements[0].reason, "no target");
}

// Figures by which a kernel of the toy costs `seconds`, one of the processor 1 us, a launch 5 us and a copy nothing.
Costs toy_costs() {
  return {.source = "costs.json",
          .gmacs_f32 = 1e6,
          .gmacs_i8 = 1e6,
          .gbytes = 1e6,
          .call_ns = 1000,
          .devices = {{"toy", {.launch_ns = 5000}}}};
}
Target priced_target(double seconds) {
  Target target = toy_target();
  target.cost = [seconds](Context&, const Module&, const Function&, const Costs&) -> Expected<Price> {
    return Price{.seconds = seconds, .source = "told"};
  };
  return target;
}

TEST_F(PartitionTest, ByCostARegionMustPayForItsLaunch) {
  const Costs costs = toy_costs();
  PlacementCosts summary;
  const auto layers = [&](int count) {
    const Atom x = param("x"), y = param("y");
    Atom sum = apply("relu", {apply("add", {x, y})});
    for (int i = 0; i < count; ++i) sum = apply("softmax", {sum});
    return apply("relu", {sum});
  };
  Target target = priced_target(0.1e-6);
  target.patterns.push_back({"toy.softmax", op(ops::kSoftmax, {any()}), {}});
  const auto placements = partition_main(layers(12), {target}, {.costs = &costs, .summary = &summary});
  EXPECT_EQ(regions(), 1);
  EXPECT_EQ(placements[3].target, "toy");
  ASSERT_EQ(placements[3].prices.size(), 2u);
  EXPECT_EQ(placements[3].prices[0].target, "cpu");
  EXPECT_NEAR(placements[3].prices[0].price.seconds, 1e-6, 1e-9);
  EXPECT_EQ(placements[3].prices[1].price.source, "told");
  // On the CPU, it would make two regions of one.
  EXPECT_NEAR(placements[3].prices[0].change.value(), 5e-6 + 1e-6 - 0.1e-6, 1e-8);
  EXPECT_EQ(placements[3].prices[1].change, 0.0);
  EXPECT_NE(explain(module_, placements).find("), total +5.9 us; toy 0.1 us (told)"), std::string::npos)
      << explain(module_, placements);
  EXPECT_NEAR(summary.total, 5e-6 + 12 * 0.1e-6 + 2e-6, 1e-8);  // `add` and `relu` are one kernel
  EXPECT_LE(summary.bound, summary.total);
  EXPECT_LE(summary.total, summary.all_cpu);
  EXPECT_LE(summary.total, summary.first_match);
  EXPECT_NE(explain(module_, placements).find("toy 0.1 us (told)"), std::string::npos);
  EXPECT_NE(explain(summary).find("which is the least"), std::string::npos) << explain(summary);
}

// Layers that overlap make a region pay that the sum of its prices would not.
TEST_F(PartitionTest, ByCostRegionsArePricedAsWholes) {
  const Costs costs = toy_costs();
  PlacementCosts summary;
  Target target = priced_target(0.9e-6);
  target.patterns.push_back({"toy.softmax", op(ops::kSoftmax, {any()}), {}});
  std::vector<int> last_args;
  target.region_cost = [&](Context&, const Module&, std::span<const RegionLayer> layers,
                           const Costs&) -> Expected<Price> {
    last_args = layers.back().args;
    return Price{.seconds = 0.1e-6 * static_cast<double>(layers.size()), .source = "told"};
  };
  Atom sum = param("x");
  for (int i = 0; i < 8; ++i) sum = apply("softmax", {sum});
  partition_main(sum, {target}, {.costs = &costs, .summary = &summary});
  EXPECT_EQ(regions(), 1);
  EXPECT_EQ(last_args, std::vector<int>{6});
  EXPECT_NEAR(summary.total, 5e-6 + 8 * 0.1e-6, 1e-8);
  EXPECT_NEAR(summary.all_cpu, 8e-6, 1e-7);
}

// Without fusion at the host, 12 kernels would pay for a launch; fused, they are one.
TEST_F(PartitionTest, ByCostFusionAtTheHostCounts) {
  const Costs costs = toy_costs();
  PlacementCosts summary;
  Atom sum = param("x");
  for (int i = 0; i < 4; ++i) sum = apply("add", {sum, param(fmt::format("y{}", i).c_str())});
  const auto placements = partition_main(sum, {priced_target(0.1e-6)}, {.costs = &costs, .summary = &summary});
  EXPECT_EQ(regions(), 0);
  EXPECT_EQ(placements[0].reason, "toy costs more");
  EXPECT_NEAR(summary.total, 1e-6, 1e-8);
}

TEST_F(PartitionTest, AnAbsurdCostIsAnErrorThatNamesTheTarget) {
  const Costs costs = toy_costs();
  const Atom x = param("x");
  builder_.finish(apply("add", {x, x}));
  module_.globals.emplace(main_, function_);
  const auto message = [&](const Target& target, const Costs& figures) {
    Module module = module_;
    const auto placements = partition(context_, module, main_, std::span(&target, 1), {.costs = &figures});
    return placements ? "accepted" : placements.error().str();
  };
  for (const double seconds : {std::nan(""), -1.0, 1e300}) {
    EXPECT_NE(message(priced_target(seconds), costs).find("target toy: toy.add costs"), std::string::npos);
  }
  EXPECT_EQ(message(priced_target(1e-6), costs), "accepted");
  EXPECT_NE(message(toy_target(), costs).find("costs.json: error: the entry devices.toy.gmacs_f32 is missing"),
            std::string::npos);
  Costs none = costs;
  none.devices.clear();
  EXPECT_NE(message(priced_target(1e-6), none).find("the entry devices.toy.launch_ns is missing"), std::string::npos);
}

TEST_F(PartitionTest, PinsDecideOrSayWhyNot) {
  const Atom x = param("x");
  const auto at = [&](const char* node) {
    builder_.at(module_.add_span({.file = "m.onnx", .node = node, .op = "Op"}));
  };
  at("/sum");
  const Atom sum = apply("add", {x, x});
  at("/relu");
  const Atom relu = apply("relu", {sum});
  at("/last");
  builder_.finish(apply("add", {relu, x}));
  module_.globals.emplace(main_, function_);
  const Costs costs = toy_costs();
  const auto placed = [&](const Pins& pins, bool by_cost) {
    Module module = module_;
    const Target target = priced_target(0.1e-6);
    const auto placements =
        partition(context_, module, main_, std::span(&target, 1), {.costs = by_cost ? &costs : nullptr, .pins = pins});
    if (!placements) return placements.error().str();
    std::string text;
    for (const Placement& placement : *placements) text += (placement.target.empty() ? "cpu" : placement.target) + " ";
    return text;
  };
  EXPECT_EQ(placed({}, false), "toy cpu toy ");
  EXPECT_EQ(placed({{"/sum", "cpu"}}, false), "cpu cpu toy ");
  EXPECT_EQ(placed({}, true), "cpu cpu cpu ");
  EXPECT_EQ(placed({{"/sum", "toy"}}, true), "toy cpu cpu ");
  for (const bool by_cost : {false, true}) {
    const auto has = [&](const Pins& pins, std::string_view part) {
      EXPECT_NE(placed(pins, by_cost).find(part), std::string::npos) << placed(pins, by_cost);
    };
    has({{"/relu", "toy"}}, "/relu is pinned to toy, which does not support its relu: toy has no pattern with relu");
    has({{"/summ", "cpu"}}, "there is no node '/summ' to pin to cpu");
    has({{"/summ", "cpu"}}, "did you mean /sum?");
    has({{"/sum", "gpu"}}, "/sum is pinned to gpu, which is not among the targets cpu, toy");
  }
}

// The host may convert the operands of a layer, and computes nothing of it that sums up.
TEST_F(PartitionTest, APinIsOfTheLayerOfANode) {
  const Atom x = param("x");
  const auto at = [&](std::string node) {
    builder_.at(module_.add_span({.file = "m.onnx", .node = std::move(node), .op = "Op"}));
  };
  at("/sum");
  const Atom sum = apply("add", {apply("relu", {x}), x});
  at("/both");
  builder_.finish(apply("add", {apply("softmax", {sum}), x}));
  module_.globals.emplace(main_, function_);
  const auto placed = [&](const Pins& pins) {
    Module module = module_;
    const Target target = toy_target();
    const auto placements = partition(context_, module, main_, std::span(&target, 1), {.pins = pins});
    if (!placements) return placements.error().str();
    std::string text;
    for (const Placement& placement : *placements) text += (placement.target.empty() ? "cpu" : placement.target) + " ";
    return text;
  };
  EXPECT_EQ(placed({{"/sum", "toy"}}), "cpu toy cpu toy ");
  EXPECT_NE(placed({{"/both", "toy"}}).find("/both is pinned to toy, which does not support its softmax"),
            std::string::npos);
}

TEST_F(PartitionTest, ATargetIsAskedOnceAboutEqualFunctions) {
  int asked = 0;
  Target target = toy_target();
  target.patterns = {
      {"toy.add", op(ops::kAdd, {any(), any()}), [&](Context&, const Module&, const Function&, const Match&) -> Status {
         ++asked;
         return {};
       }}};
  Atom sum = param("x");
  for (int i = 0; i < 5; ++i) sum = apply("add", {sum, i < 3 ? param("y") : number(static_cast<float>(i / 4))});
  partition_main(sum, {target});
  EXPECT_EQ(asked, 3);  // of two variables, and a variable and each constant
}

TEST_F(PartitionTest, APatternOfTooManyStepsIsAnErrorThatNamesTheRow) {
  Target target = toy_target();
  std::vector<GraphPattern> operands(10, any());
  operands.back() = constant();
  target.patterns = {{"toy.concat", commutative(ops::kConcat, operands), {}}};
  const Atom x = param("x");
  builder_.finish(*builder_.apply("concat", Atoms(10, x), {{"axis", int64_t{0}}}));
  module_.globals.emplace(main_, std::move(function_));
  const auto placements = partition(context_, module_, main_, std::span(&target, 1));
  ASSERT_FALSE(placements);
  EXPECT_EQ(placements.error().what,
            "row toy.concat of target toy: the pattern takes more than 100000 steps at a value");
}

TEST_F(PartitionTest, BoundariesAreExplicitTransforms) {
  Target target = toy_target();
  target.boundary = [](Context&, const Module&, const Function& region) -> Expected<Boundary> {
    return Boundary{.params = std::vector<BoundaryLayout>(region.params.size(), {"NC", "NC2c"}),
                    .results = {{"NC", "NC2c"}}};
  };
  const Atom x = param("x"), y = param("y");
  partition_main(apply("relu", {apply("add", {x, y})}), {target});
  int transforms = 0;
  for (const Binding& binding : module_.function(main_)->body.bindings) {
    const auto* apply = std::get_if<Apply>(&binding.value);
    transforms += apply && apply->op->is(ops::kLayoutTransform);
  }
  EXPECT_EQ(transforms, 3);
}

TEST_F(PartitionTest, WhatArrivesPartitionedIsTakenIfItIsWhatItSays) {
  const Atom x = param("x"), y = param("y");
  partition_main(apply("add", {apply("multiply", {x, y}), x}));
  const std::vector<Target> targets{toy_target()};
  EXPECT_TRUE(partition(context_, module_, main_, targets));
  EXPECT_EQ(regions(), 1);
  const auto message = [&](const char* composite) {
    Module module = module_;
    for (auto& [name, global] : module.globals) {
      auto& f = std::get<Function>(global);
      if (!f.composite.empty()) f.composite = composite;
    }
    const auto placements = partition(context_, module, main_, targets);
    return placements ? "accepted" : placements.error().str();
  };
  EXPECT_EQ(message("toy.multiply_add"), "accepted");
  EXPECT_NE(message("toy.add").find("is not a toy.add of toy: it must be add(_, _)"), std::string::npos);
  EXPECT_NE(message("toy.sub").find("is not a toy.sub of toy: the target has no such pattern"), std::string::npos);
  EXPECT_NE(message("").find("is not a region of toy: its body must be calls"), std::string::npos);
}

TEST_F(PartitionTest, AFunctionThatIsNotThereIsAnError) {
  const auto placements = partition(context_, module_, main_, {});
  ASSERT_FALSE(placements);
  EXPECT_EQ(placements.error().what, "the module has no function @main");
}

TEST(TargetNames, HaveAKindUpToTheColon) {
  EXPECT_EQ(kind_of("accel:tiny"), "accel");
  EXPECT_EQ(kind_of("accel"), "accel");
}

}  // namespace
}  // namespace tenon::compiler
