#include "compiler/pipeline/node_prices.h"

#include <algorithm>
#include <string_view>

namespace tenon::compiler {
namespace {

// Whether the node of the graph is that of the placement: it has the name of the model's node, perhaps with a number,
// and its operator or the composite that it is a part of.
bool is_of(const runtime::GraphNode& node, std::string_view name, const Placement& placement) {
  const std::string_view tail = std::string_view(node.name).substr(std::min(name.size(), node.name.size()));
  if (!node.name.starts_with(name) || !(tail.empty() || tail.starts_with(" ("))) return false;
  const bool is_on_cpu = placement.target.empty();
  return node.device == (is_on_cpu ? "cpu" : placement.target) &&
         node.op == (is_on_cpu ? placement.op : placement.composite);
}

}  // namespace

std::map<std::string, std::vector<runtime::NodePrice>> node_prices(const Module& partitioned,
                                                                   std::span<const Placement> placements,
                                                                   const runtime::Graph& graph) {
  std::map<std::string, std::vector<runtime::NodePrice>> prices;
  for (const Placement& placement : placements) {
    if (placement.prices.empty()) continue;
    const std::string name = partitioned.span(placement.target.empty() ? placement.span : placement.root).node;
    const auto node = std::ranges::find_if(graph.nodes, [&](const runtime::GraphNode& each) {
      return is_of(each, name, placement) && !prices.contains(each.name);
    });
    if (node == graph.nodes.end()) continue;
    for (const TargetPrice& price : placement.prices)
      prices[node->name].push_back({price.target, price.price.seconds, price.price.source, price.change});
  }
  return prices;
}

}  // namespace tenon::compiler
