#include "runtime/batch/order.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tenon::runtime {

uint32_t CallGraph::add(uint32_t type, std::span<const uint32_t> read) {
  types.push_back(type);
  const auto begin = static_cast<ptrdiff_t>(reads.size());
  for (const uint32_t node : read) {
    if (std::find(reads.begin() + begin, reads.end(), node) == reads.end()) reads.push_back(node);
  }
  reads_end.push_back(static_cast<uint32_t>(reads.size()));
  return static_cast<uint32_t>(types.size() - 1);
}

void CallGraph::clear() {
  types.clear();
  reads.clear();
  reads_end.clear();
}

std::optional<BatchPolicy> parse_batch_policy(std::string_view name) {
  const auto found = std::ranges::find(kBatchPolicies, name);
  if (found == std::end(kBatchPolicies)) return std::nullopt;
  return static_cast<BatchPolicy>(found - std::begin(kBatchPolicies));
}

namespace {

std::vector<uint32_t> depths(const CallGraph& graph) {
  std::vector<uint32_t> depth(graph.size(), 0);
  for (size_t i = 0; i < graph.size(); ++i) {
    for (const uint32_t read : graph.reads_of(i)) depth[i] = std::max(depth[i], depth[read] + 1);
  }
  return depth;
}

BatchOrder by_depth(const CallGraph& graph) {
  const std::vector<uint32_t> depth = depths(graph);
  BatchOrder order;
  for (uint32_t i = 0; i < graph.size(); ++i) order.nodes.push_back(i);
  const auto step = [&](uint32_t i) { return std::pair(depth[i], graph.types[i]); };
  std::ranges::stable_sort(order.nodes, {}, step);
  for (uint32_t i = 1; i <= order.nodes.size(); ++i) {
    if (i == order.nodes.size() || step(order.nodes[i]) != step(order.nodes[i - 1])) order.ends.push_back(i);
  }
  return order;
}

// The nodes that are left, by what they wait for.
class Agenda {
 public:
  explicit Agenda(const CallGraph& graph) : graph_(graph), waits_(graph.size()), ready_(graph.type_count) {
    readers_end_.assign(graph.size() + 1, 0);
    for (const uint32_t read : graph.reads) ++readers_end_[read + 1];
    for (size_t i = 0; i < graph.size(); ++i) readers_end_[i + 1] += readers_end_[i];
    std::vector<uint32_t> next(readers_end_.begin(), readers_end_.end() - 1);
    readers_.resize(graph.reads.size());
    for (uint32_t i = 0; i < graph.size(); ++i) {
      const auto reads = graph.reads_of(i);
      waits_[i] = static_cast<uint32_t>(reads.size());
      for (const uint32_t read : reads) readers_[next[read]++] = i;
      if (reads.empty()) ready_[graph.types[i]].push_back(i);
    }
  }

  const std::vector<uint32_t>& ready(uint32_t type) const { return ready_[type]; }
  std::span<const uint32_t> readers(uint32_t node) const {
    return std::span(readers_).subspan(readers_end_[node], readers_end_[node + 1] - readers_end_[node]);
  }
  // Runs the ready nodes of the type; `arrives` is called for each node that is ready after it.
  template <class Arrives>
  void run(uint32_t type, BatchOrder& order, Arrives arrives) {
    std::vector<uint32_t> nodes = std::move(ready_[type]);
    ready_[type].clear();
    std::ranges::sort(nodes);
    for (const uint32_t node : nodes) {
      for (const uint32_t reader : readers(node)) {
        if (--waits_[reader] != 0) continue;
        ready_[graph_.types[reader]].push_back(reader);
        arrives(reader);
      }
    }
    order.nodes.insert(order.nodes.end(), nodes.begin(), nodes.end());
    order.ends.push_back(static_cast<uint32_t>(order.nodes.size()));
  }

  // Runs steps until none is left: of the types with ready nodes, the last one whose key is greatest. `leaves` is
  // called for each node of a step before it runs.
  template <class Key, class Leaves>
  BatchOrder run_greatest(Key key, Leaves leaves) {
    return run_greatest(key, leaves, [](uint32_t) {});
  }
  template <class Key, class Leaves, class Arrives>
  BatchOrder run_greatest(Key key, Leaves leaves, Arrives arrives) {
    BatchOrder order;
    while (order.nodes.size() < graph_.size()) {
      std::optional<uint32_t> best;
      decltype(key(uint32_t{0})) greatest{};
      for (uint32_t type = 0; type < graph_.type_count; ++type) {
        if (ready_[type].empty()) continue;
        const auto found = key(type);
        if (best && found < greatest) continue;
        best = type;
        greatest = found;
      }
      for (const uint32_t node : ready_[*best]) leaves(node);
      run(*best, order, arrives);
    }
    return order;
  }

 private:
  const CallGraph& graph_;
  std::vector<uint32_t> waits_;  // by node: the nodes that it reads and that are left
  std::vector<std::vector<uint32_t>> ready_;
  std::vector<uint32_t> readers_, readers_end_;
};

BatchOrder by_mean_depth(const CallGraph& graph) {
  const std::vector<uint32_t> depth = depths(graph);
  std::vector<double> sum(graph.type_count), count(graph.type_count);
  for (size_t i = 0; i < graph.size(); ++i) {
    sum[graph.types[i]] += depth[i];
    ++count[graph.types[i]];
  }
  // The smallest type where means are equal: the key says so, since the last one is taken.
  return Agenda(graph).run_greatest(
      [&](uint32_t type) { return std::pair(-sum[type] / count[type], -static_cast<int64_t>(type)); },
      [&](uint32_t node) {
        sum[graph.types[node]] -= depth[node];
        --count[graph.types[node]];
      });
}

BatchOrder by_ratio(const CallGraph& graph) {
  // In the graph of one type, a node follows the nodes of its type from which a path leads to it without another one.
  std::vector<uint32_t> waits(graph.size(), 0);
  std::vector<std::vector<uint32_t>> followers(graph.size());
  std::vector<std::vector<uint32_t>> nearest(graph.size());
  for (uint32_t type = 0; type < graph.type_count; ++type) {
    for (uint32_t i = 0; i < graph.size(); ++i) {
      std::vector<uint32_t>& found = nearest[i];
      found.clear();
      for (const uint32_t read : graph.reads_of(i)) {
        if (graph.types[read] == type) found.push_back(read);
        else found.insert(found.end(), nearest[read].begin(), nearest[read].end());
      }
      std::ranges::sort(found);
      found.erase(std::ranges::unique(found).begin(), found.end());
      if (graph.types[i] != type) continue;
      waits[i] = static_cast<uint32_t>(found.size());
      for (const uint32_t before : found) followers[before].push_back(i);
    }
  }
  std::vector<double> first(graph.type_count, 0);  // nodes that are left and wait for no node of their type
  for (size_t i = 0; i < graph.size(); ++i) first[graph.types[i]] += waits[i] == 0 ? 1 : 0;
  Agenda agenda(graph);
  return agenda.run_greatest(
      [&](uint32_t type) { return static_cast<double>(agenda.ready(type).size()) / first[type]; },
      [&](uint32_t node) {
        --first[graph.types[node]];
        for (const uint32_t follower : followers[node]) first[graph.types[follower]] += --waits[follower] == 0 ? 1 : 0;
      });
}

BatchOrder by_height(const CallGraph& graph) {
  const size_t types = graph.type_count;
  Agenda agenda(graph);
  std::vector<uint32_t> on_path(graph.size() * types, 0);        // u, by node and type
  std::vector<std::vector<uint32_t>> left(types), ready(types);  // by type and height: nodes that are left, ready ones
  std::vector<uint32_t> height(graph.size());
  for (size_t i = graph.size(); i-- > 0;) {
    uint32_t* const u = on_path.data() + i * types;
    for (const uint32_t reader : agenda.readers(static_cast<uint32_t>(i))) {
      for (size_t a = 0; a < types; ++a) u[a] = std::max(u[a], on_path[reader * types + a]);
    }
    const uint32_t type = graph.types[i];
    height[i] = ++u[type];
    if (left[type].size() <= height[i]) left[type].resize(height[i] + 1);
    ++left[type][height[i]];
  }
  for (uint32_t type = 0; type < types; ++type) {
    ready[type].resize(left[type].size());
    for (const uint32_t node : agenda.ready(type)) ++ready[type][height[node]];
  }
  return agenda.run_greatest(
      [&](uint32_t type) {
        while (left[type].back() == 0) left[type].pop_back();
        const size_t top = left[type].size() - 1;
        return std::pair(static_cast<double>(ready[type][top]) / left[type][top], agenda.ready(type).size());
      },
      [&](uint32_t node) {
        --left[graph.types[node]][height[node]];
        --ready[graph.types[node]][height[node]];
      },
      [&](uint32_t node) { ++ready[graph.types[node]][height[node]]; });
}

}  // namespace

BatchOrder batch_order(const CallGraph& graph, BatchPolicy policy) {
  switch (policy) {
    case BatchPolicy::kDepth: return by_depth(graph);
    case BatchPolicy::kAgenda: return by_mean_depth(graph);
    case BatchPolicy::kRatio: return by_ratio(graph);
    case BatchPolicy::kHeight: return by_height(graph);
  }
  return {};
}

}  // namespace tenon::runtime
