#include "compiler/backends/accel/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/backends/accel/estimate.h"
#include "compiler/backends/accel/prefetch.h"

namespace tenon::compiler::accel {
namespace {

// The number of candidates of a layer that are simulated alone, and of those that are simulated in pairs.
constexpr size_t kCandidates = 48, kKept = 16;
// The budget of simulated instructions per layer: for its candidates, then for its pairs.
constexpr double kCandidateBudget = 15000, kPairBudget = 40000;

using TiledLayer = std::pair<const Operands*, const Tiling*>;

// Cycles of layers on an accelerator that is otherwise idle.
double simulate(const spec::Config& config, const spec::MemoryTiming& memory,
                std::initializer_list<TiledLayer> layers) {
  TileProgram sketch(config, true);
  uint32_t index = 0;
  for (const auto& [operands, tiling] : layers) sketch.emit(index++, *operands, *tiling);
  return simulate(config, prefetched(config, sketch.ops(), Prefetch::kConstants, 2000), memory);
}

// A candidate, and the cheapest path to it.
struct Node {
  Tiling tiling;
  double alone = 0;  // cycles of this layer alone
  double path = 0;   // cycles of all layers up to candidates
  size_t before = 0;
};

}  // namespace

std::vector<Tiling> choose_tilings(const spec::Config& config, const std::vector<Operands>& layers,
                                   const spec::MemoryTiming& memory) {
  std::vector<std::vector<Node>> nodes;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Operands& layer = layers[i];
    const Contraction c = contraction(config, layer.layer, layer.input, layer.output, layer.rows_input);
    std::vector<Node>& candidates = nodes.emplace_back();
    double total = 0;
    for (const Tiling& tiling : candidate_tilings(config, c, kCandidates, memory)) {
      total += tiling.instructions;
      if (candidates.empty() || total <= kCandidateBudget) candidates.push_back({.tiling = tiling});
    }
    if (candidates.size() == 1) {  // a single candidate, or too long to simulate: the estimate is used
      candidates[0].alone = candidates[0].tiling.cycles;
    } else {
      for (Node& node : candidates) node.alone = simulate(config, memory, {{&layer, &node.tiling}});
      std::ranges::stable_sort(candidates, {}, &Node::alone);
    }
    const double kept = std::sqrt(kPairBudget / (2 * candidates[0].tiling.instructions));
    candidates.resize(std::min({candidates.size(), kKept, static_cast<size_t>(std::max(1.0, kept))}));
    if (i == 0) {
      for (Node& node : candidates) node.path = node.alone;
      continue;
    }
    const std::vector<Node>& last = nodes[i - 1];
    for (Node& node : candidates) {
      node.path = std::numeric_limits<double>::infinity();
      for (size_t k = 0; k < last.size(); ++k) {
        double both = last[k].alone + node.alone;
        if (candidates.size() > 1 || last.size() > 1) {  // otherwise there is only one path
          both = simulate(config, memory, {{&layers[i - 1], &last[k].tiling}, {&layer, &node.tiling}});
        }
        const double path = last[k].path + both - last[k].alone;
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

double cycles_of(const spec::Config& config, const std::vector<Operands>& layers, const spec::MemoryTiming& memory,
                 Tilings& known) {
  std::vector<Tiling> tilings;
  for (const Operands& operands : layers) {
    const auto& [l, in, out, rows, input_at, residual_at, output_at] = operands;
    const std::string key =
        fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(l.kind),
                    in.n, in.c, in.h, in.w, out.c, out.h, out.w, l.kernel_h, l.kernel_w, l.stride_y, l.stride_x,
                    l.dilation_y, l.dilation_x, l.groups, l.pad_top, l.pad_left, l.pad_bottom, l.pad_right, in.rank,
                    out.rank, rows, out.n, l.parameters.residual);
    auto found = known.find(key);
    if (found == known.end()) found = known.emplace(key, choose_tilings(config, {operands}, memory)[0]).first;
    tilings.push_back(found->second);
  }
  double instructions = 0, estimate = 0;
  for (const Tiling& tiling : tilings) instructions += tiling.instructions, estimate += tiling.cycles;
  if (instructions > kCandidateBudget * static_cast<double>(layers.size())) return estimate;
  TileProgram sketch(config, true);
  for (uint32_t i = 0; i < layers.size(); ++i) sketch.emit(i, layers[i], tilings[i]);
  return simulate(config, prefetched(config, sketch.ops(), memory), memory);
}

}  // namespace tenon::compiler::accel
