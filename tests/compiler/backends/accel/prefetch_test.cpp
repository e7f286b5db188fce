// Prefetching moves loads ahead, and never past what they conflict with.
#include "compiler/backends/accel/prefetch.h"

#include <gtest/gtest.h>

#include "compiler/backends/accel/estimate.h"
#include "compiler/backends/accel/tokens.h"
#include "tests/compiler/backends/accel/random_region.h"
#include "tests/seed.h"

namespace tenon::compiler::accel {
namespace {

bool conflict(const std::vector<Access>& a, const std::vector<Access>& b) {
  for (const Access& x : a) {
    for (const Access& y : b) {
      if ((x.write || y.write) && x.memory == y.memory && x.base == y.base && x.begin < y.end && y.begin < x.end)
        return true;
    }
  }
  return false;
}

// The tile program of random layers, each operation with its position in `layer`.
std::vector<TileOp> program(const spec::Config& config, const Region& region) {
  TileProgram tiles(config);
  for (size_t i = 0; i < region.layers.size(); ++i) {
    const Layer& layer = region.layers[i];
    const auto at = [](int tensor) { return Location{2, int64_t{tensor} << 24}; };
    const Operands operands{layer,
                            region.tensors[layer.input],
                            region.tensors[layer.output],
                            false,
                            at(layer.input),
                            layer.residual == -1 ? Location{} : at(layer.residual),
                            at(layer.output)};
    const Contraction c = contraction(config, layer, operands.input, operands.output, false);
    tiles.emit(0, operands, candidate_tilings(config, c, 1)[0]);
  }
  for (size_t i = 0; i < tiles.ops().size(); ++i) tiles.ops()[i].layer = static_cast<uint32_t>(i);
  return tiles.ops();
}

TEST(AccelPrefetch, LoadsMoveAheadButConflictsAndEnginesStayInOrder) {
  Random random(test_seed(3));
  size_t moved = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const spec::Config config =
        trial % 3 == 0 ? random_config(random) : *spec::load_config(trial % 3 == 1 ? "tiny" : "default");
    const Problem problem = problem_of(random_case(random, config, 1 << 17));
    const std::vector<TileOp> before = program(config, problem.region);
    if (before.size() > 2000) continue;
    for (const Prefetch which : {Prefetch::kConstants, Prefetch::kAll}) {
      const std::vector<TileOp> after = prefetched(config, before, which, 300);
      ASSERT_EQ(after.size(), before.size());
      std::vector<size_t> position(before.size(), before.size());
      for (size_t i = 0; i < after.size(); ++i) position[after[i].layer] = i;
      std::vector<std::vector<Access>> touched;
      for (const TileOp& op : before) touched.push_back(accesses(config, op.instruction));
      for (size_t i = 0; i < before.size(); ++i) {
        ASSERT_LT(position[i], before.size()) << "operation " << i << " is lost";
        moved += position[i] < i;
        for (size_t j = 0; j < i; ++j) {
          const bool ordered = conflict(touched[i], touched[j]) ||
                               spec::engine_of(before[i].instruction) == spec::engine_of(before[j].instruction);
          if (ordered) {
            ASSERT_LT(position[j], position[i]) << before[j].text << " / " << before[i].text;
          }
        }
      }
    }
  }
  EXPECT_GT(moved, 100u);
}

TEST(AccelPrefetch, NoLeadMovesNothingPastAProduct) {
  const auto config = *spec::load_config("default");
  Case c;
  c.c = 32, c.h = c.w = 14, c.o = 64, c.kernel_h = c.kernel_w = 3, c.tail = 1;
  const std::vector<TileOp> before = program(config, problem_of(c).region);
  const std::vector<TileOp> after = prefetched(config, before, Prefetch::kAll, 0);
  const auto products = [](const std::vector<TileOp>& ops) {
    std::vector<int> ahead(ops.size());  // by operation: products in front of it
    int count = 0;
    for (const TileOp& op : ops) {
      ahead[op.layer] = count;
      count += std::holds_alternative<spec::native::Gemm>(op.instruction);
    }
    return ahead;
  };
  EXPECT_EQ(products(after), products(before));
}

TEST(AccelPrefetch, TheChosenOrderIsNeverSlowerByTheCycleModel) {
  const auto config = *spec::load_config("default");
  Case c;
  c.c = 64, c.h = c.w = 14, c.o = 64, c.kernel_h = c.kernel_w = 3, c.tail = 1;
  const std::vector<TileOp> before = program(config, problem_of(c).region);
  EXPECT_LE(simulate(config, prefetched(config, before)), simulate(config, before));
}

// Short loads before each product: what a slow memory needs ahead, a fast one does not.
TEST(AccelPrefetch, TheOrderChosenForASlowMemoryIsTheFastestOnIt) {
  auto config = *spec::load_config("default");
  config.read_beats = 0;
  Case c;
  c.c = 64, c.h = c.w = 14, c.o = 64, c.kernel_h = c.kernel_w = 3, c.tail = 1;
  const std::vector<TileOp> before = program(config, problem_of(c).region);
  const spec::MemoryTiming slow{400, 400, 16};
  EXPECT_GT(simulate(config, before, slow), simulate(config, before));
  const double chosen = simulate(config, prefetched(config, before, slow), slow);
  EXPECT_LE(chosen, simulate(config, prefetched(config, before), slow));
  EXPECT_LE(chosen, simulate(config, before, slow));
}

}  // namespace
}  // namespace tenon::compiler::accel
