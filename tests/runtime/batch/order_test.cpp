#include "runtime/batch/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "runtime/batch/families.h"
#include "support/random.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::runtime {
namespace {

// Whether the steps run each node once, after what it reads, and each with nodes of one type.
void expect_valid(const CallGraph& graph, const BatchOrder& order) {
  std::vector<size_t> step(graph.size(), SIZE_MAX);
  uint32_t begin = 0;
  for (size_t s = 0; s < order.ends.size(); ++s) {
    ASSERT_LT(begin, order.ends[s]);
    for (uint32_t i = begin; i < order.ends[s]; ++i) {
      const uint32_t node = order.nodes[i];
      ASSERT_EQ(step[node], SIZE_MAX);
      step[node] = s;
      EXPECT_EQ(graph.types[node], graph.types[order.nodes[begin]]);
      for (const uint32_t read : graph.reads_of(node)) EXPECT_LT(step[read], s);
    }
    begin = order.ends[s];
  }
  EXPECT_EQ(order.nodes.size(), graph.size());
}

TEST(BatchOrder, CountsOfBatchesAreThoseOfTheReference) {
  // Computed by another program from the definitions of the policies.
  const std::map<std::string_view, std::map<BatchPolicy, size_t>> expected{
      {"tree_cell",
       {{BatchPolicy::kDepth, 69}, {BatchPolicy::kAgenda, 60}, {BatchPolicy::kRatio, 53}, {BatchPolicy::kHeight, 53}}},
      {"tree_2type",
       {{BatchPolicy::kDepth, 102}, {BatchPolicy::kAgenda, 84}, {BatchPolicy::kRatio, 73}, {BatchPolicy::kHeight, 70}}},
      {"tree_out_all",
       {{BatchPolicy::kDepth, 94}, {BatchPolicy::kAgenda, 76}, {BatchPolicy::kRatio, 53}, {BatchPolicy::kHeight, 53}}},
      {"bilstm",
       {{BatchPolicy::kDepth, 486},
        {BatchPolicy::kAgenda, 398},
        {BatchPolicy::kRatio, 348},
        {BatchPolicy::kHeight, 348}}},
      {"lattice",
       {{BatchPolicy::kDepth, 482},
        {BatchPolicy::kAgenda, 359},
        {BatchPolicy::kRatio, 248},
        {BatchPolicy::kHeight, 241}}}};
  size_t compared = 0;
  for (const CallFamily& family : call_families()) {
    for (const auto& [policy, count] : expected.at(family.name)) {
      size_t steps = 0;
      for (const CallGraph& graph : family.graphs) {
        const BatchOrder order = batch_order(graph, policy);
        expect_valid(graph, order);
        steps += order.ends.size();
      }
      EXPECT_EQ(steps, count) << family.name << " by " << kBatchPolicies[static_cast<size_t>(policy)];
      ++compared;
    }
  }
  EXPECT_EQ(compared, 20u);
}

TEST(BatchOrder, EveryNodeRunsOnceAfterWhatItReads) {
  Random random(test_seed(51));
  for (int round = 0; round < rounds(200); ++round) {
    CallGraph graph{
        .type_count = 1 + static_cast<uint32_t>(random.between(0, 4)), .types = {}, .reads = {}, .reads_end = {}};
    const auto nodes = static_cast<uint32_t>(random.between(0, 39));
    for (uint32_t i = 0; i < nodes; ++i) {
      std::vector<uint32_t> reads;
      for (int64_t k = i == 0 ? 0 : random.between(0, 3); k > 0; --k)
        reads.push_back(static_cast<uint32_t>(random.between(0, i - 1)));
      graph.add(static_cast<uint32_t>(random.between(0, graph.type_count - 1)), reads);
    }
    for (const std::string_view name : kBatchPolicies)
      expect_valid(graph, batch_order(graph, *parse_batch_policy(name)));
  }
}

TEST(BatchOrder, AnUnknownPolicyHasNoName) { EXPECT_FALSE(parse_batch_policy("deepest")); }

}  // namespace
}  // namespace tenon::runtime
