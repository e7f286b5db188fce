// Maximum flow and minimum cut. Dinic 1970, "Algorithm for solution of a problem of maximum flow in a network with
// power estimation": augmenting paths along the shortest distances, many in each phase.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::compiler {

class FlowNetwork {
 public:
  static constexpr int64_t kUnlimited = INT64_MAX / 4;

  explicit FlowNetwork(uint32_t nodes = 0) : first_(nodes, kNone) {}

  uint32_t add_node();  // the nodes are numbered from 0
  // Capacities are not negative; all that are less than kUnlimited together are less than it.
  void add_edge(uint32_t from, uint32_t to, int64_t capacity);
  // The maximum flow, once for a network: it uses the capacities up.
  int64_t solve(uint32_t source, uint32_t sink);
  // Whether the node is on the source's side of the minimum cut with the fewest nodes there, after solve().
  bool on_source_side(uint32_t node) const { return distance_[node] != kNone; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Edge {  // its reverse is the edge with the other last bit
    uint32_t to, next;
    int64_t left;  // of its capacity
  };
  bool measure(uint32_t source, uint32_t sink);
  int64_t augment(uint32_t source, uint32_t sink);

  std::vector<Edge> edges_;
  std::vector<uint32_t> first_, next_, distance_;
};

}  // namespace tenon::compiler
