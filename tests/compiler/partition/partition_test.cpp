// Bring your own code generator, on a page: a target that takes additions and multiplications (`toy_target`), and what
// partitioning makes of functions with it.
#include "compiler/partition/partition.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/operator.h"

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
  std::vector<Placement> partition_main(Atom result, std::vector<Target> targets = {toy_target()}) {
    builder_.finish(result);
    module_.globals.emplace(main_, std::move(function_));
    std::vector<runtime::Tensor> inputs;
    for (size_t i = 0; i < module_.function(main_)->params.size(); ++i) {
      inputs.push_back(
          runtime::Tensor::of<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6.5f + static_cast<float>(i)}));
    }
    const auto before = interpret(context_, module_, main_, std::span<const runtime::Tensor>(inputs));
    EXPECT_TRUE(before) << before.error().str();
    auto placements = partition(context_, module_, main_, targets);
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
  target.fits = [](Context&, const Module&, const Function& region) -> Status {
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

}  // namespace
}  // namespace tenon::compiler
