// The assignment of targets by cost, against exhaustive search.
#include "compiler/partition/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "compiler/base/max_flow.h"
#include "compiler/fuzz/assignments.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

TEST(MaxFlow, EqualsTheMinimumCutOfSmallNetworks) {
  std::mt19937 random(test_seed(1));
  for (int i = 0; i < rounds(400); ++i) {
    constexpr uint32_t kNodes = 7;
    std::vector<std::array<int64_t, 3>> edges;
    FlowNetwork network(kNodes);
    for (int e = 0; e < 14; ++e) {
      const uint32_t from = random() % kNodes, to = random() % kNodes;
      const int64_t capacity = random() % 10;
      edges.push_back({from, to, capacity});
      network.add_edge(from, to, capacity);
    }
    const auto cut = [&](auto&& is_source) {
      int64_t total = 0;
      for (const auto& [from, to, capacity] : edges) {
        if (from != to && is_source(from) && !is_source(to)) total += capacity;
      }
      return total;
    };
    int64_t least = INT64_MAX;
    for (uint32_t set = 0; set < (1u << (kNodes - 2)); ++set) {  // node 0 is the source, the last one the sink
      const uint32_t side = set << 1 | 1;
      least = std::min(least, cut([&](int64_t node) { return (side >> node & 1) != 0; }));
    }
    const int64_t flow = network.solve(0, kNodes - 1);
    ASSERT_EQ(flow, least);
    ASSERT_EQ(cut([&](int64_t node) { return network.on_source_side(static_cast<uint32_t>(node)); }), flow);
  }
}

TEST(Assignment, WithoutLaunchesItIsTheOptimum) {
  for (const uint32_t labels : {2u, 3u}) {
    const auto tally = fuzz::check_assignments(test_seed(2), rounds(labels == 2 ? 200 : 100), labels, false);
    ASSERT_TRUE(tally) << tally.error().str();
    EXPECT_EQ(tally->optimal, tally->problems);
  }
}

TEST(Assignment, WithLaunchesItIsNearlyAlwaysTheOptimum) {
  for (const uint32_t labels : {2u, 3u}) {
    const auto tally = fuzz::check_assignments(test_seed(3), rounds(labels == 2 ? 400 : 200), labels, true);
    ASSERT_TRUE(tally) << tally.error().str();
    EXPECT_GE(tally->optimal, tally->problems * 98 / 100);
    EXPECT_LE(tally->worst, 0.25);  // one in some thousand graphs, without branch and bound
  }
}

TEST(Assignment, IsTheSameEachTime) {
  for (int i = 0; i < rounds(5); ++i) {
    const AssignmentProblem problem = fuzz::random_problem(test_seed(4) + i, {.units = 40, .labels = 3});
    const Assignment one = assign(problem), two = assign(problem);
    EXPECT_EQ(one.labels, two.labels);
    EXPECT_LE(one.bound, one.cost);
  }
}

// Regions are those that the partitioner merges: not across a third group on a path between them.
TEST(Assignment, RegionsDoNotCloseACycle) {
  AssignmentProblem problem{.units = {{3, 1}, {1, kNever}, {9, 1}, {9, 1}},
                            .values = {},
                            .gains = {},
                            .launches = {0, 5},
                            .follows = {{}, {0}, {0, 1}, {2}}};
  for (uint32_t u = 0; u < 4; ++u) {
    AssignmentProblem::Value value{.producer = u, .readers = {}, .read_by_host = u == 3, .down = {0, 1}, .up = {0, 1}};
    for (uint32_t reader = 0; reader < 4; ++reader) {
      if (std::ranges::find(problem.follows[reader], u) != problem.follows[reader].end())
        value.readers.push_back(reader);
    }
    problem.values.push_back(std::move(value));
  }
  const Labels all = all_at(problem, 1);
  EXPECT_EQ(all, (Labels{1, 0, 1, 1}));
  EXPECT_EQ(regions_of(problem, all), (std::vector<uint32_t>{0, 1, 2, 2}));
  EXPECT_EQ(cost_of(problem, all), 4 + 2 * 5 + 3);  // units, launches, a copy each of values 0, 1 and 3
  const Assignment best = assign(problem);
  EXPECT_EQ(best.labels, (Labels{0, 0, 1, 1}));  // the first launch does not pay
  EXPECT_EQ(best.cost, 3 + 1 + 1 + 1 + 5 + 2 + 1);
  EXPECT_TRUE(best.optimal);
}

TEST(Assignment, AThousandUnitsHaveABound) {
  const Assignment best = assign(fuzz::random_problem(test_seed(5), {.units = 1000, .labels = 3}));
  std::printf("1000 units: cost %lld, bound %lld, %llu evaluations\n", static_cast<long long>(best.cost),
              static_cast<long long>(best.bound), static_cast<unsigned long long>(best.evaluations));
  EXPECT_LE(best.bound, best.cost);
}

}  // namespace
}  // namespace tenon::compiler
