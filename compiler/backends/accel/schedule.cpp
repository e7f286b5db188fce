#include "compiler/backends/accel/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/backends/accel/estimate.h"
#include "compiler/backends/accel/pooled.h"
#include "compiler/backends/accel/prefetch.h"

namespace tenon::compiler::accel {
namespace {

// The number of candidates of a layer that are simulated alone, and of those that are simulated in pairs.
constexpr size_t kCandidates = 48, kKept = 16;
// The budget of simulated instructions per layer: for its candidates, then for its pairs.
constexpr double kCandidateBudget = 15000, kPairBudget = 40000;
// The number of tilings of fused layers that are simulated.
constexpr size_t kFusedCandidates = 48;
// What a beat of the memory port costs where fused layers are compared with others: an engine that waits for the port
// delays its neighbours too, and bytes take energy.
constexpr double kFusedTrafficWeight = 0.05;

using TiledLayer = std::pair<const Operands*, const Tiling*>;

// Cycles of layers on an accelerator that is otherwise idle.
double simulate(const spec::Config& config, const spec::MemoryTiming& memory,
                std::initializer_list<TiledLayer> layers) {
  TileProgram sketch(config, true);
  uint32_t index = 0;
  for (const auto& [operands, tiling] : layers) sketch.emit(index++, *operands, *tiling);
  return simulate(config, prefetched(config, sketch.ops(), Prefetch::kConstants, 2000), memory);
}

// The candidates of a layer alone.
std::vector<Tiling> tilings_of(const spec::Config& config, const Operands& o, const spec::MemoryTiming& memory) {
  if (o.layer.kind == LayerKind::kMaxPool2d) return pooled_tilings(config, {&o, 1}, kCandidates, memory);
  return candidate_tilings(config, contraction(config, o.layer, o.input, o.output, o.rows_input), kCandidates, memory);
}

// The candidates of layers that are fused, each as a step.
std::vector<Step> fused_candidates(const spec::Config& config, std::span<const Operands> block, Step step,
                                   const spec::MemoryTiming& memory) {
  std::vector<Step> steps;
  if (block.back().layer.kind == LayerKind::kMaxPool2d) {
    for (const Tiling& tiling : pooled_tilings(config, block, kFusedCandidates, memory)) {
      step.tiling = tiling;
      steps.push_back(step);
    }
    return steps;
  }
  for (const FusedTiling& tiling : fused_tilings(config, block, kFusedCandidates)) {
    step.fused = tiling;
    steps.push_back(step);
  }
  return steps;
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
    std::vector<Node>& candidates = nodes.emplace_back();
    double total = 0;
    for (const Tiling& tiling : tilings_of(config, layer, memory)) {
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

void emit(TileProgram& program, std::span<const Operands> layers, const Step& step) {
  const auto index = static_cast<uint32_t>(step.first);
  const std::span<const Operands> block = layers.subspan(step.first, step.count);
  if (step.count == 1) program.emit(index, block[0], step.tiling);
  else if (block.back().layer.kind == LayerKind::kMaxPool2d) program.emit_pooled(index, block, step.tiling);
  else program.emit_fused(index, block, step.fused);
}

std::vector<Step> choose_steps(const spec::Config& config, const std::vector<Operands>& layers,
                               const std::vector<bool>& internal, Fusing fusing, const spec::MemoryTiming& memory) {
  const std::vector<Tiling> tilings = choose_tilings(config, layers, memory);
  const auto single = [&](size_t i) { return Step{.first = i, .count = 1, .tiling = tilings[i]}; };
  // By the first layer: the steps that begin there, with several layers; none in most networks.
  std::vector<std::vector<Step>> fused(layers.size());
  bool any = false;
  for (size_t i = 0; i < layers.size() && fusing != Fusing::kNever; ++i) {
    const std::span<const Operands> following = std::span(layers).subspan(i);
    const FusedLengths lengths = fused_lengths(config, following);
    const auto inside = [&](size_t count) {
      for (size_t k = i; k + 1 < i + count; ++k)
        if (!internal[k]) return false;
      return true;
    };
    if ((lengths.two || can_fuse_pool(config, following)) && inside(2)) fused[i].push_back({.first = i, .count = 2});
    if (lengths.three && inside(3)) fused[i].push_back({.first = i, .count = 3});
    any |= !fused[i].empty();
  }
  std::vector<Step> steps;
  if (!any) {
    for (size_t i = 0; i < layers.size(); ++i) steps.push_back(single(i));
    return steps;
  }

  const auto cycles = [&](const Step& step) {
    TileProgram sketch(config, true);
    emit(sketch, layers, step);
    const Estimate found = estimate(config, prefetched(config, sketch.ops(), Prefetch::kAll, 2000), memory);
    return found.cycles + kFusedTrafficWeight * found.beats;
  };
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> cheapest(layers.size() + 1, kNever);  // from each layer to the end
  std::vector<Step> first(layers.size());
  cheapest[layers.size()] = 0;
  for (size_t i = layers.size(); i-- > 0;) {
    const auto consider = [&](const Step& step, double alone) {
      const double total = alone + cheapest[i + step.count];
      if (total < cheapest[i]) cheapest[i] = total, first[i] = step;
    };
    // A layer that no fused step contains is alone in any case.
    bool chooses = false;
    for (size_t k = i < 2 ? 0 : i - 2; k <= i; ++k) {
      for (const Step& step : fused[k]) chooses |= k + step.count > i;
    }
    const bool simulates = chooses && tilings[i].instructions <= kCandidateBudget;
    constexpr double kLast = 1e15;  // of a step that is taken where there is no other
    consider(single(i), chooses && fusing == Fusing::kWherePossible ? kLast
                        : simulates                                 ? cycles(single(i))
                                                                    : tilings[i].cycles);
    for (const Step& step : fused[i]) {
      double budget = kCandidateBudget;
      const auto block = std::span(layers).subspan(i, step.count);
      for (const Step& candidate : fused_candidates(config, block, step, memory)) {
        const bool pooled = block.back().layer.kind == LayerKind::kMaxPool2d;
        if ((budget -= pooled ? candidate.tiling.instructions : candidate.fused.instructions) < 0) break;
        consider(candidate, cycles(candidate));
      }
    }
  }
  for (size_t i = 0; i < layers.size(); i += first[i].count) steps.push_back(first[i]);
  return steps;
}

double cycles_of(const spec::Config& config, const std::vector<Operands>& layers, const spec::MemoryTiming& memory,
                 Tilings& known) {
  std::vector<Tiling> tilings;
  for (const Operands& operands : layers) {
    const auto& [l, in, out, rows, input_at, residual_at, output_at, weights_at] = operands;
    const std::string key =
        fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
                    static_cast<int>(l.kind), in.n, in.c, in.h, in.w, out.c, out.h, out.w, l.kernel_h, l.kernel_w,
                    l.stride_y, l.stride_x, l.dilation_y, l.dilation_x, l.groups, l.pad_top, l.pad_left, l.pad_bottom,
                    l.pad_right, in.rank, out.rank, rows, out.n, l.parameters.residual, l.batch);
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
