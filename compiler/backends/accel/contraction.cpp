#include "compiler/backends/accel/contraction.h"

#include <algorithm>
#include <cassert>

#include "hw/spec/isa.h"
#include "hw/spec/own_lanes.h"

namespace tenon::compiler::accel {

namespace {

// Products of activations: each is an image.
void set_products(Contraction& c, const Layer& layer, const RegionTensor& input, const RegionTensor& output) {
  const int64_t channels = input.n * input.c / layer.batch, rows = output.n * output.c / layer.batch;
  c.n = layer.batch;
  c.steps = ceil_div(channels, c.block_in);
  c.image_bytes = ceil_div(channels, c.lane_block) * c.plane_bytes;
  c.out_blocks = ceil_div(rows, c.lane_block) * (c.lane_block / c.block_out);
  c.out_image_bytes = ceil_div(rows, c.lane_block) * c.out_plane_bytes;
  c.computed_weights = true;
  c.channels = channels;
  c.weight_rows = rows;
  c.weight_groups = layer.weight_groups;
  c.weight_plane_bytes = c.weight_groups * rows * c.lane_block;
}

}  // namespace

Contraction contraction(const spec::Config& config, const Layer& layer, const RegionTensor& input,
                        const RegionTensor& output, bool rows) {
  Contraction c;
  c.block_in = config.block_in;
  c.block_out = config.block_out;
  c.lane_block = lane_block(config);
  const bool flattened = input.rank == 4 && output.rank == 2;
  c.n = input.n;
  c.out_h = output.h;
  c.out_w = flattened ? 1 : output.w;
  c.out_blocks = ceil_div(output.c, c.lane_block) * (c.lane_block / c.block_out);
  c.out_plane_bytes = output.h * output.w * c.lane_block;
  c.out_image_bytes = flattened ? c.lane_block : ceil_div(output.c, c.lane_block) * c.out_plane_bytes;
  c.residual = layer.parameters.residual;
  c.height = input.h;
  c.width = input.w;
  c.pixel_bytes = c.lane_block;
  c.plane_bytes = input.h * input.w * c.lane_block;
  c.image_bytes = ceil_div(input.c, c.lane_block) * c.plane_bytes;
  c.steps = ceil_div(input.c, c.block_in);
  switch (layer.kind) {
    case LayerKind::kConv2d:
      c.kernel_h = layer.kernel_h;
      c.kernel_w = layer.kernel_w;
      c.stride_y = layer.stride_y;
      c.stride_x = layer.stride_x;
      c.dilation_y = layer.dilation_y;
      c.dilation_x = layer.dilation_x;
      c.pad_top = layer.pad_top;
      c.pad_left = layer.pad_left;
      c.pad_value = layer.pad_value;
      c.diagonal = has_block_groups(config, layer, input, output);
      break;
    case LayerKind::kAdd: c.diagonal = c.shared = true; break;
    case LayerKind::kMaxPool2d:  // the positions of its map
      c.out_h = input.h;
      c.out_w = input.w;
      c.diagonal = c.shared = true;
      break;
    case LayerKind::kGlobalSumPool:
      c.kernel_h = input.h;
      c.kernel_w = input.w;
      c.diagonal = c.shared = true;
      break;
    case LayerKind::kMatmul: set_products(c, layer, input, output); break;
  }
  c.group_in = std::max<int64_t>(1, c.block_out / c.block_in);
  c.group_out = std::max<int64_t>(1, c.block_in / c.block_out);
  if (c.diagonal && !c.shared) {
    c.group_in = std::max(c.group_in, input.c / layer.groups / c.block_in);
    c.group_out = std::max(c.group_out, output.c / layer.groups / c.block_out);
  }
  if (c.diagonal) c.steps = c.group_in;
  // A pool reads a vector for each step, and waits for them.
  c.own = config.own_lanes && c.diagonal && !c.shared && layer.groups == input.c && layer.groups == output.c;
  c.own_passes = config.packed_products ? 2 : 1;
  if (rows) {
    assert(gains_by_unfolding(layer, input, config));
    c.unfolded = true;
    c.unfolded_bytes = layer.kernel_w * input.c;
    c.steps = ceil_div(c.unfolded_bytes, c.block_in);
    c.kernel_w = 1;
    c.pixel_bytes = input.c;
    c.plane_bytes = 0;
    c.image_bytes = input.h * input.w * input.c;
  }
  return c;
}

int64_t Contraction::gemm_cycles() const {
  if (own) return n * out_blocks * own_steps(*this, out_h, out_w, kernel_h, kernel_w);
  return n * out_h * out_w * out_blocks * steps * kernel_h * kernel_w;
}

std::vector<OwnWindow> own_windows(const Contraction& c, int64_t kernel_h, int64_t kernel_w) {
  constexpr int64_t kRows = spec::native::kOwnRows;
  std::vector<OwnWindow> windows;
  const int64_t most = std::min(kRows, c.block_in);
  for (int64_t row = 0; row < kernel_h; row += most) {
    const int64_t rows = std::min(most, kernel_h - row), widest = (c.block_in - rows) / kRows + 1;
    for (int64_t col = 0; col < kernel_w; col += widest) {
      windows.push_back({row, col, rows, std::min(widest, kernel_w - col)});
    }
  }
  return windows;
}

int64_t own_phases(const Contraction& c, const OwnWindow& window, int64_t cols, int64_t kernel_w) {
  const int64_t stride = kernel_w > 1 ? c.stride_x : 1, dilation = kernel_w > 1 ? c.dilation_x : 1;
  return window.cols > 1 && dilation % stride == 0 ? std::min(dilation / stride, cols) : 1;
}

int64_t own_steps(const Contraction& c, int64_t rows, int64_t cols, int64_t kernel_h, int64_t kernel_w) {
  const int64_t stride = kernel_w > 1 ? c.stride_x : 1, dilation = kernel_w > 1 ? c.dilation_x : 1;
  int64_t columns = 0;  // that enter for a row of outputs
  for (const OwnWindow& w : own_windows(c, kernel_h, kernel_w)) {
    const int64_t phases = own_phases(c, w, cols, kernel_w);
    for (int64_t phase = 0; phase < phases; ++phase) {
      // The distance of the rows of a window is odd (window()), times the dilation.
      columns += spec::own_row_steps({.rows = w.rows,
                                      .columns = w.cols,
                                      .row_distance = kernel_h > 1 ? c.dilation_y : 1,
                                      .moves = stride * phases == dilation       ? 1
                                               : stride * phases == 2 * dilation ? 2
                                                                                 : 0,
                                      .outputs = ceil_div(cols - phase, phases)},
                                     c.own_passes);
    }
  }
  return rows * columns;
}

int64_t own_command_rows(const Contraction& c, const Tiling& t, int64_t kernel_h, int64_t kernel_w) {
  return own_windows(c, kernel_h, kernel_w).size() > 1 ? std::min(t.subtile_rows, t.rows) : t.rows;
}

int64_t own_commands(const Contraction& c, const Tiling& t, int64_t kernel_h, int64_t kernel_w) {
  int64_t commands = 0;
  for (const OwnWindow& w : own_windows(c, kernel_h, kernel_w)) commands += own_phases(c, w, t.cols, kernel_w);
  return commands * ceil_div(t.rows, own_command_rows(c, t, kernel_h, kernel_w));
}

int8_t weight_at(const Contraction& c, const Layer& layer, const RegionTensor& input, const RegionTensor& output,
                 int64_t block, int64_t step, int64_t ky, int64_t kx, int64_t out, int64_t in) {
  const int64_t o = block * c.block_out + out;
  if (c.shared) {  // block and step count from any aligned pair of lanes
    const int64_t lane = c.block_in > c.block_out ? in - block % c.group_out * c.block_out : in + step * c.block_in;
    return lane == out ? 1 : 0;
  }
  if (o >= output.c) return 0;
  const int64_t kernel = layer.kernel_h * layer.kernel_w;
  int64_t i = ((c.diagonal ? block / c.group_out * c.group_in : 0) + step) * c.block_in + in;
  if (c.unfolded) {
    if (i >= c.unfolded_bytes) return 0;
    kx = i / input.c;
    i %= input.c;
  }
  const int64_t per_group = input.c / layer.groups;
  if (i >= input.c || i / per_group != o / (output.c / layer.groups)) return 0;
  return layer.weights[(o * per_group + i % per_group) * kernel + ky * layer.kernel_w + kx];
}

Window window(const Contraction& c, int64_t rows, int64_t cols, int64_t kernel_h, int64_t kernel_w) {
  // One kernel row needs only every stride-th row of the map; the same holds for columns.
  const bool dense_y = kernel_h > 1, dense_x = kernel_w > 1;
  Window w{dense_y ? (rows - 1) * c.stride_y + (kernel_h - 1) * c.dilation_y + 1 : rows,
           dense_x ? (cols - 1) * c.stride_x + (kernel_w - 1) * c.dilation_x + 1 : cols, dense_y ? 1 : c.stride_y,
           dense_x ? 1 : c.stride_x};
  // Own lanes read the rows of a window at a time, from banks of the scratchpad that an odd distance separates.
  if (c.own && dense_y && w.cols % 2 == 0) ++w.cols;
  return w;
}

int64_t chunk_input_blocks(const Contraction& c, int64_t out_blocks, int64_t steps) {
  if (!c.diagonal) return steps;
  if (out_blocks == 1) return steps;
  return (ceil_div(out_blocks, c.group_out) + (c.group_out > 1 ? 1 : 0)) * steps;
}

int64_t chunk_weights(const Contraction& c, int64_t out_blocks, int64_t steps, int64_t kernel_h, int64_t kernel_w) {
  if (c.own) return out_blocks * static_cast<int64_t>(own_windows(c, kernel_h, kernel_w).size());
  if (!c.shared) return out_blocks * steps * kernel_h * kernel_w;
  return c.block_in > c.block_out && out_blocks > 1 ? c.group_out : steps;
}

}  // namespace tenon::compiler::accel
