// The assignment of targets by cost, against exhaustive search.
#include "compiler/partition/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "compiler/base/max_flow.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

class Problems {
 public:
  explicit Problems(uint32_t constant) : random_(test_seed(constant)) {}

  Ticks below(Ticks n) { return std::uniform_int_distribution<Ticks>(0, n - 1)(random_); }

  // Units of about 100 ticks, values of up to 60, and launches of up to 400 or none.
  AssignmentProblem make(uint32_t units, uint32_t labels, bool launches) {
    AssignmentProblem problem;
    problem.launches.assign(labels, 0);
    problem.follows.resize(units);
    for (uint32_t label = 1; label < labels && launches; ++label) problem.launches[label] = below(400);
    for (uint32_t u = 0; u < units; ++u) {
      std::vector<Ticks> costs;
      for (uint32_t label = 0; label < labels; ++label) {
        costs.push_back(label > 0 && below(5) == 0 ? kNever : 1 + below(label == 0 ? 200 : 100));
      }
      problem.units.push_back(std::move(costs));
      AssignmentProblem::Value value = value_of(labels);
      value.producer = u;
      problem.values.push_back(std::move(value));
    }
    problem.values.push_back(value_of(labels));  // from outside
    for (uint32_t u = 0; u < units; ++u) {
      if (u == 0 || below(5) == 0) problem.values.back().readers.push_back(u);
      for (Ticks count = u == 0 ? 0 : 1 + below(2); count > 0; --count) {
        const auto operand = static_cast<uint32_t>(below(4) == 0 ? below(u) : std::max<Ticks>(0, u - 1 - below(3)));
        auto& readers = problem.values[operand].readers;
        if (std::ranges::find(readers, u) != readers.end()) continue;
        readers.push_back(u);
        problem.follows[u].push_back(operand);
        if (below(3) == 0) problem.gains.push_back({static_cast<uint32_t>(below(labels)), {operand, u}, below(50)});
      }
    }
    for (uint32_t u = 0; u < units; ++u)
      problem.values[u].read_by_host = problem.values[u].readers.empty() || below(8) == 0;
    return problem;
  }

 private:
  AssignmentProblem::Value value_of(uint32_t labels) {
    AssignmentProblem::Value value;
    value.down.assign(labels, 0);
    value.up.assign(labels, 0);
    for (uint32_t label = 1; label < labels; ++label) value.down[label] = below(60), value.up[label] = below(60);
    return value;
  }
  std::mt19937 random_;
};

Ticks exhaustive(const AssignmentProblem& problem) {
  Labels labels(problem.units.size(), 0);
  Ticks best = INT64_MAX;
  while (true) {
    const auto allowed = [&](size_t u) { return problem.units[u][labels[u]] != kNever; };
    bool possible = true;
    for (size_t u = 0; u < labels.size(); ++u) possible &= allowed(u);
    if (possible) best = std::min(best, cost_of(problem, labels));
    size_t u = 0;
    while (u < labels.size() && ++labels[u] == problem.labels()) labels[u++] = 0;
    if (u == labels.size()) return best;
  }
}

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

struct Tally {
  int graphs = 0, optimal = 0;
  double worst = 0;  // cost / optimum - 1
};

// Without branch and bound; with it, each of them is optimal.
Tally tally(Problems& problems, int count, uint32_t units, uint32_t labels, bool launches) {
  Tally tally;
  for (int i = 0; i < count; ++i) {
    const AssignmentProblem problem = problems.make(units - static_cast<uint32_t>(problems.below(4)), labels, launches);
    const Ticks best = exhaustive(problem);
    const Labels random_first = all_at(problem, static_cast<uint32_t>(problems.below(labels)));
    const Assignment made = assign(problem, {.exact = false, .candidates = {random_first}});
    EXPECT_EQ(made.cost, cost_of(problem, made.labels));
    EXPECT_LE(best, made.cost);
    EXPECT_LE(made.bound, best);
    for (uint32_t label = 0; label < labels; ++label) EXPECT_LE(made.cost, cost_of(problem, all_at(problem, label)));
    const double off = static_cast<double>(made.cost) / static_cast<double>(best) - 1;
    ++tally.graphs;
    tally.optimal += made.cost == best;
    tally.worst = std::max(tally.worst, best > 0 ? off : 0);
    const Assignment exact = assign(problem);
    EXPECT_TRUE(exact.optimal);
    EXPECT_EQ(exact.cost, best);
    EXPECT_EQ(exact.bound, best);
  }
  std::printf("%u labels, launches %d: %d of %d optimal, worst %.2f %%\n", labels, launches, tally.optimal,
              tally.graphs, 100 * tally.worst);
  return tally;
}

TEST(Assignment, WithoutLaunchesItIsTheOptimum) {
  Problems problems(2);
  for (const uint32_t labels : {2u, 3u}) {
    const auto count = static_cast<int>(rounds(labels == 2 ? 200 : 100));
    const Tally result = tally(problems, count, labels == 2 ? 12 : 8, labels, false);
    EXPECT_EQ(result.optimal, result.graphs);
  }
}

TEST(Assignment, WithLaunchesItIsNearlyAlwaysTheOptimum) {
  Problems problems(3);
  for (const uint32_t labels : {2u, 3u}) {
    const auto count = static_cast<int>(rounds(labels == 2 ? 400 : 200));
    const Tally result = tally(problems, count, labels == 2 ? 12 : 8, labels, true);
    EXPECT_GE(result.optimal, result.graphs * 98 / 100);
    EXPECT_LE(result.worst, 0.25);  // one in some thousand graphs
  }
}

TEST(Assignment, IsTheSameEachTime) {
  Problems problems(4);
  for (int i = 0; i < rounds(5); ++i) {
    const AssignmentProblem problem = problems.make(40, 3, true);
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
  Problems problems(5);
  const Assignment best = assign(problems.make(1000, 3, true));
  std::printf("1000 units: cost %lld, bound %lld, %llu evaluations\n", static_cast<long long>(best.cost),
              static_cast<long long>(best.bound), static_cast<unsigned long long>(best.evaluations));
  EXPECT_LE(best.bound, best.cost);
}

}  // namespace
}  // namespace tenon::compiler
