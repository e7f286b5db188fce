#include "compiler/backends/accel/schedule.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/backends/accel/estimate.h"
#include "compiler/backends/accel/prefetch.h"

namespace tenon::compiler::accel {
namespace {

constexpr size_t kCandidates = 24, kKept = 6;  // a layer: simulated on their own, and in pairs
// Instructions that may be simulated for one candidate of a layer.
constexpr double kMaxInstructions = 20000;

using Choice = std::pair<const Operands*, const Tiling*>;

// Cycles of layers on an accelerator that is otherwise idle.
double simulate(const spec::Config& config, std::initializer_list<Choice> layers) {
  TileProgram sketch(config, true);
  uint32_t index = 0;
  for (const auto& [operands, tiling] : layers) sketch.emit(index++, *operands, *tiling);
  return simulate(config, prefetched(config, sketch.ops(), Prefetch::kConstants, 2000));
}

// A candidate, and the cheapest way to it.
struct Node {
  Tiling tiling;
  double alone = 0;  // cycles of this layer on its own
  double path = 0;   // cycles of all layers up to here
  size_t before = 0;
};

}  // namespace

std::vector<Tiling> choose_tilings(const spec::Config& config, const std::vector<Operands>& layers) {
  std::vector<std::vector<Node>> nodes;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Operands& layer = layers[i];
    const Contraction c = contraction(config, layer.layer, layer.input, layer.output, layer.rows_input);
    std::vector<Node>& here = nodes.emplace_back();
    for (const Tiling& tiling : candidate_tilings(config, c, kCandidates)) {
      if (here.empty() || tiling.instructions <= kMaxInstructions) here.push_back({.tiling = tiling});
    }
    const bool simulated = here[0].tiling.instructions <= kMaxInstructions;
    if (!simulated) here.resize(1);  // too long to simulate: the estimate decides
    for (Node& node : here) node.alone = simulated ? simulate(config, {{&layer, &node.tiling}}) : node.tiling.cycles;
    std::ranges::stable_sort(here, {}, &Node::alone);
    if (here.size() > kKept) here.resize(kKept);
    for (Node& node : here) {
      node.path = node.alone;
      if (i == 0) continue;
      node.path = std::numeric_limits<double>::infinity();
      for (size_t k = 0; k < nodes[i - 1].size(); ++k) {
        const Node& before = nodes[i - 1][k];
        const bool pair = simulated && before.tiling.instructions <= kMaxInstructions;
        const double both = pair ? simulate(config, {{&layers[i - 1], &before.tiling}, {&layer, &node.tiling}})
                                 : before.alone + node.alone;
        const double path = before.path + both - before.alone;
        if (path < node.path) node.path = path, node.before = k;
      }
    }
  }
  std::vector<Tiling> chosen(layers.size());
  if (layers.empty()) return chosen;
  const auto cheapest = std::ranges::min_element(nodes.back(), {}, &Node::path);
  size_t at = cheapest - nodes.back().begin();
  for (size_t i = layers.size(); i-- > 0;) {
    chosen[i] = nodes[i][at].tiling;
    at = nodes[i][at].before;
  }
  return chosen;
}

}  // namespace tenon::compiler::accel
