#include "compiler/base/max_flow.h"

#include <algorithm>
#include <cassert>

namespace tenon::compiler {

uint32_t FlowNetwork::add_node() {
  first_.push_back(kNone);
  return static_cast<uint32_t>(first_.size() - 1);
}

void FlowNetwork::add_edge(uint32_t from, uint32_t to, int64_t capacity) {
  assert(capacity >= 0 && from < first_.size() && to < first_.size());
  if (capacity == 0 || from == to) return;
  for (const auto& [a, b, left] : {Edge{from, to, capacity}, Edge{to, from, 0}}) {
    edges_.push_back({b, first_[a], left});
    first_[a] = static_cast<uint32_t>(edges_.size() - 1);
  }
}

// The distances from the source over edges with capacity left; whether the sink has one.
bool FlowNetwork::measure(uint32_t source, uint32_t sink) {
  distance_.assign(first_.size(), kNone);
  distance_[source] = 0;
  std::vector<uint32_t> open{source};
  for (size_t i = 0; i < open.size(); ++i) {
    for (uint32_t e = first_[open[i]]; e != kNone; e = edges_[e].next) {
      if (edges_[e].left == 0 || distance_[edges_[e].to] != kNone) continue;
      distance_[edges_[e].to] = distance_[open[i]] + 1;
      open.push_back(edges_[e].to);
    }
  }
  return distance_[sink] != kNone;
}

// One path to the sink along increasing distances, and the flow through it; 0 where there is none. `next_` has the
// first edge of each node that may lead on; the path is a list, since a recursion could be as deep as the network.
int64_t FlowNetwork::augment(uint32_t source, uint32_t sink) {
  std::vector<uint32_t> path;
  uint32_t at = source;
  while (at != sink) {
    uint32_t& e = next_[at];
    while (e != kNone && (edges_[e].left == 0 || distance_[edges_[e].to] != distance_[at] + 1)) e = edges_[e].next;
    if (e != kNone) {
      path.push_back(e);
      at = edges_[e].to;
    } else if (path.empty()) {
      return 0;
    } else {
      at = edges_[path.back() ^ 1].to;
      next_[at] = edges_[path.back()].next;
      path.pop_back();
    }
  }
  int64_t flow = kUnlimited;
  for (const uint32_t e : path) flow = std::min(flow, edges_[e].left);
  for (const uint32_t e : path) {
    edges_[e].left -= flow;
    edges_[e ^ 1].left += flow;
  }
  return flow;
}

int64_t FlowNetwork::solve(uint32_t source, uint32_t sink) {
  int64_t total = 0;
  while (measure(source, sink)) {
    next_ = first_;
    while (const int64_t flow = augment(source, sink)) total += flow;
  }
  return total;
}

}  // namespace tenon::compiler
