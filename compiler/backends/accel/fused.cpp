#include "compiler/backends/accel/fused.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "hw/spec/isa.h"

namespace tenon::compiler::accel {
namespace {

using spec::Memory;

// The hidden blocks whose weights one MOVE loads at most: a larger one is waited for at the beginning.
constexpr int64_t kMaxGroup = 4;

Contraction contraction_of(const spec::Config& config, const Operands& o) {
  return contraction(config, o.layer, o.input, o.output, o.rows_input);
}

bool is_pointwise(const Layer& l) {
  return l.kind == LayerKind::kConv2d && l.groups == 1 && l.kernel_h == 1 && l.kernel_w == 1 && l.stride_y == 1 &&
         l.stride_x == 1 && l.pad_top == 0 && l.pad_left == 0 && l.pad_bottom == 0 && l.pad_right == 0;
}

// A depthwise convolution; between layers on the chip its windows are dense, so that all positions are computed once.
bool is_depthwise(const spec::Config& config, const Operands& o, bool dense) {
  const Layer& l = o.layer;
  if (l.kind != LayerKind::kConv2d || !contraction_of(config, o).own) return false;
  return !dense || ((l.kernel_h > 1 || l.stride_y == 1) && (l.kernel_w > 1 || l.stride_x == 1));
}

std::vector<int64_t> equal_parts(int64_t extent) {
  std::vector<int64_t> sizes;
  for (int64_t parts = 1; parts <= extent; ++parts) {
    const int64_t size = ceil_div(extent, parts);
    if (sizes.empty() || sizes.back() != size) sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

FusedLengths fused_lengths(const spec::Config& config, std::span<const Operands> layers) {
  FusedLengths lengths;
  if (!config.results_to_inp || !config.own_lanes) return lengths;
  const auto connected = [&](size_t count) {
    if (layers.size() < count) return false;
    for (size_t i = 0; i < count; ++i) {
      const Operands& o = layers[i];
      if (o.input.rank != 4 || o.output.rank != 4 || o.rows_input) return false;
      if (i + 1 < count && (o.layer.parameters.residual || layers[i + 1].layer.input != o.layer.output)) return false;
    }
    return true;
  };
  if (connected(2)) lengths.two = is_depthwise(config, layers[0], false) && is_pointwise(layers[1].layer);
  if (connected(3)) {
    lengths.three =
        is_pointwise(layers[0].layer) && is_depthwise(config, layers[1], true) && is_pointwise(layers[2].layer);
  }
  return lengths;
}

FusedPlan fused_plan(const spec::Config& config, std::span<const Operands> layers, const FusedTiling& tiling) {
  const bool expands = layers.size() == 3;
  const Contraction middle = contraction_of(config, layers[layers.size() - 2]),
                    last = contraction_of(config, layers.back());
  const auto depth = [&](Memory memory) { return config.depth(memory); };
  const auto& [rows, cols, group, buffers, cycles, instructions] = tiling;
  FusedPlan plan;
  plan.window = window(middle, rows, cols, middle.kernel_h, middle.kernel_w);
  const int64_t size = plan.window.rows * plan.window.cols, results = rows * cols, blocks = last.out_blocks;
  int64_t steps = 0;  // input blocks of the first layer
  if (expands) {
    steps = contraction_of(config, layers[0]).steps;
    plan.hidden = size;
    plan.expanded = std::min(plan.window.rows, middle.height) * std::min(plan.window.cols, middle.width);
    plan.input = steps * plan.expanded;
  } else {
    plan.input = size;
  }
  plan.input_begin = 2 * plan.hidden + buffers * group * results;
  // Two windows of the depthwise layer, so that one is loaded while the other is read; the larger input of an expanding
  // layer is read by many products.
  const int64_t inputs = expands ? plan.input : 2 * plan.input;
  const int64_t accumulators = 2 * plan.expanded + 2 * results;
  const int64_t room = std::max<int64_t>(0, (depth(Memory::kAcc) - accumulators) / results);
  if (group == middle.out_blocks) plan.outputs = std::min(room, 2 * blocks);
  else plan.outputs = room >= 2 * blocks ? 2 * blocks : blocks;
  const bool accumulates = plan.outputs <= room && plan.outputs >= (group == middle.out_blocks ? 1 : blocks);

  const int64_t windows = static_cast<int64_t>(own_windows(middle, middle.kernel_h, middle.kernel_w).size());
  const int64_t share = std::max<int64_t>(depth(Memory::kWgt) / 8, 1);  // of one MOVE, where it has more than one block
  plan.weight_group = std::clamp<int64_t>(share / (steps + windows), 1, std::min(kMaxGroup, group));
  plan.output_group = std::clamp<int64_t>(share / group, 1, blocks);
  const bool weights = std::max({steps, windows, group}) <= depth(Memory::kWgt);
  const bool factors = std::max(plan.expanded, results) <= kMaxFactor &&
                       (middle.dilation_y + middle.stride_y) * plan.window.cols <= kMaxFactor &&
                       std::max({plan.window.rows, plan.window.cols, rows, cols, steps, group}) <= kMaxExtent;
  plan.fits = factors && weights && accumulates && plan.input_begin + inputs <= depth(Memory::kInp) &&
              std::max(blocks, plan.weight_group) <= depth(Memory::kPar) &&
              plan.window.cols * middle.pixel_bytes <= kMaxRowBytes && cols * last.lane_block <= kMaxRowBytes;
  return plan;
}

std::vector<FusedTiling> fused_tilings(const spec::Config& config, std::span<const Operands> layers, size_t count) {
  const bool expands = layers.size() == 3;
  const Contraction middle = contraction_of(config, layers[layers.size() - 2]),
                    last = contraction_of(config, layers.back());
  const int64_t steps = expands ? contraction_of(config, layers[0]).steps : 0;
  const auto hidden = static_cast<double>(middle.out_blocks), blocks = static_cast<double>(last.out_blocks);
  const double bus = config.axi_bytes(), vector = static_cast<double>(config.block_in) / bus,
               passes = config.requantizer_passes;
  std::vector<FusedTiling> tilings;
  const auto consider = [&](FusedTiling t) {
    const FusedPlan plan = fused_plan(config, layers, t);
    if (!plan.fits) return;
    const auto& [rows, cols, group, buffers, estimated, instructions] = t;
    // All tiles as one in the middle of the map.
    const auto tiles = static_cast<double>(last.n * ceil_div(last.out_h, rows) * ceil_div(last.out_w, cols));
    const auto results = static_cast<double>(rows * cols), expanded = static_cast<double>(plan.expanded);
    const double own = static_cast<double>(own_steps(middle, rows, cols, middle.kernel_h, middle.kernel_w));
    const double gemm = tiles * hidden * (expanded * static_cast<double>(steps) + own + results * blocks);
    const double groups = std::ceil(hidden / static_cast<double>(group));
    const double requantize = passes * tiles * (hidden * (expanded + results) + blocks * results) +
                              kRequantizeCycles * tiles * (hidden * (expands ? 2 : 1) + blocks);
    // The requantizer's reads of acc while products are added, which a group begins with.
    const double refused = tiles * groups * (results + expanded);
    const auto weights = static_cast<double>(
        middle.out_blocks *
        (steps + static_cast<int64_t>(own_windows(middle, middle.kernel_h, middle.kernel_w).size()) + last.out_blocks));
    const bool resident = weights <= static_cast<double>(config.depth(Memory::kWgt));
    t.instructions = tiles * (hidden * ((expands ? 2 : 1) + 2) + (groups + 2) * blocks + (expands ? 2.0 : hidden));
    const double read = tiles * static_cast<double>(plan.input) * vector * (expands ? 1 : hidden) +
                        weights * (resident ? 1 : tiles) * config.block_out * vector +
                        t.instructions * kInstructionBytes / bus;
    t.cycles = std::max({gemm + refused, requantize, read}) + 0.02 * (requantize + read);
    tilings.push_back(t);
  };
  for (const int64_t rows : equal_parts(last.out_h)) {
    for (const int64_t cols : equal_parts(last.out_w)) {
      for (int64_t parts = 1; parts < 2 * middle.out_blocks; parts *= 2) {
        const int64_t group = ceil_div(middle.out_blocks, parts);
        for (const int64_t buffers : {1, 2}) consider({.rows = rows, .cols = cols, .group = group, .buffers = buffers});
      }
    }
  }
  std::ranges::stable_sort(tilings, {}, &FusedTiling::cycles);
  tilings.resize(std::min(tilings.size(), count));
  return tilings;
}

}  // namespace tenon::compiler::accel
