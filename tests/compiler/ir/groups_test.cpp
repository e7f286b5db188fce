#include "compiler/ir/groups.h"
#include "support/function_ref.h"
#include "tests/seed.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

namespace tenon::compiler {
namespace {

using Graph = std::vector<std::vector<uint32_t>>;

Graph random_graph(std::mt19937& random, uint32_t nodes) {
  Graph operands(nodes);
  for (uint32_t i = 1; i < nodes; ++i) {
    const uint32_t count = random() % 3 + (i == 1);
    for (uint32_t k = 0; k < count; ++k) operands[i].push_back(i - 1 - random() % std::min(i, 6u));
  }
  return operands;
}

// Whether the graph of groups has no cycle, by depth-first search, independent of the data structures of ConvexGroups.
bool is_acyclic(const Graph& operands, FunctionRef<uint32_t(uint32_t)> group) {
  std::vector<std::set<uint32_t>> needs(operands.size());
  for (uint32_t i = 0; i < operands.size(); ++i) {
    for (const uint32_t operand : operands[i]) {
      if (group(operand) != group(i)) needs[group(i)].insert(group(operand));
    }
  }
  std::vector<int> state(operands.size());
  const std::function<bool(uint32_t)> visit = [&](uint32_t g) {
    if (state[g] == 1) return false;
    if (state[g] == 2) return true;
    state[g] = 1;
    for (const uint32_t other : needs[g]) {
      if (!visit(other)) return false;
    }
    state[g] = 2;
    return true;
  };
  for (uint32_t i = 0; i < operands.size(); ++i) {
    if (!visit(group(i))) return false;
  }
  return true;
}

TEST(ConvexGroups, NodesWithAPathThroughAnotherGroupDoNotMerge) {
  // 0 -> 1 -> 3 and 0 -> 2 -> 3: merging 0 with 3 would need 1 and 2 to be both before and after the merged group.
  ConvexGroups groups({{}, {0}, {0}, {1, 2}});
  EXPECT_FALSE(groups.can_merge(0, 3));
  EXPECT_FALSE(groups.merge(0, 3));
  EXPECT_TRUE(groups.merge(0, 1));
  EXPECT_FALSE(groups.merge(1, 3));
  EXPECT_TRUE(groups.merge(0, 2));
  EXPECT_TRUE(groups.merge(0, 3));
}

TEST(ConvexGroups, RandomMergesKeepTheGroupsAcyclicAndMaximal) {
  std::mt19937 random(test_seed(5));
  for (int trial = 0; trial < 2000; ++trial) {
    const Graph operands = random_graph(random, 3 + random() % 30);
    std::vector<bool> selected(operands.size());
    for (size_t i = 0; i < selected.size(); ++i) selected[i] = random() % 3 != 0;
    ConvexGroups groups(operands);
    const auto merge_all = [&] {
      for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < operands.size(); ++i) {
          for (const uint32_t operand : operands[i]) {
            if (!selected[i] || !selected[operand] || groups.find(i) == groups.find(operand)) continue;
            changed |= groups.merge(operand, i);
          }
        }
      }
    };
    merge_all();
    const auto find = [&](uint32_t node) { return groups.find(node); };
    ASSERT_TRUE(is_acyclic(operands, find)) << "trial " << trial;
    // No two adjacent groups of selected nodes could still merge.
    for (uint32_t i = 0; i < operands.size(); ++i) {
      for (const uint32_t operand : operands[i]) {
        if (!selected[i] || !selected[operand] || find(i) == find(operand)) continue;
        const uint32_t a = find(i), b = find(operand);
        EXPECT_FALSE(is_acyclic(operands, [&](uint32_t node) { return find(node) == a ? b : find(node); }))
            << "trial " << trial;
      }
    }
    // The topological order has every group after the groups that it needs.
    std::vector<uint32_t> position(operands.size());
    const auto order = groups.topological();
    for (uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    for (uint32_t i = 0; i < operands.size(); ++i) {
      for (const uint32_t operand : operands[i]) ASSERT_LE(position[find(operand)], position[find(i)]);
    }
  }
}

TEST(ConvexGroups, WorkIsLinearInTheGraph) {
  // A long chain with skip edges and a value that every node uses, merged into groups of ten.
  const auto steps = [](uint32_t nodes) {
    Graph operands(nodes);
    for (uint32_t i = 1; i < nodes; ++i) {
      operands[i] = {i - 1, 0};
      if (i % 7 == 0) operands[i].push_back(i - 6);
    }
    ConvexGroups groups(operands, 64);
    for (uint32_t i = 1; i < nodes; ++i) {
      if (i % 10 != 0) groups.merge(i - 1, i);
    }
    return static_cast<double>(groups.steps()) / nodes;
  };
  EXPECT_LE(steps(20000), 1.05 * steps(2000));
}

}  // namespace
}  // namespace tenon::compiler
