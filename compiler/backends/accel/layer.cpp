#include "compiler/backends/accel/layer.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "compiler/backends/accel/pooled.h"
#include "hw/spec/registers.h"
#include "runtime/accelerator_program.h"
#include "support/try.h"

namespace tenon::compiler::accel {
namespace {

// The limits of instruction fields that no tiling can avoid.
constexpr int64_t kMaxTop = 255, kMaxLeftBytes = 2047, kMaxStepBytes = 65535, kMaxTensorBytes = int64_t{1} << 32;

std::unexpected<Diagnostic> refuse(const Layer& layer, std::string what, std::string help = {}) {
  return error(std::move(what), layer.name, help.empty() ? "it runs on the CPU" : std::move(help));
}

int64_t blocked_bytes(const RegionTensor& t, const spec::Config& config) {
  const int64_t block = lane_block(config);
  return t.n * ceil_div(t.c, block) * t.h * t.w * block;
}

Status supports_pool(const spec::Config& config, const Layer& layer, const RegionTensor& input,
                     const RegionTensor& output) {
  if (!config.window_maximum) {
    return refuse(layer, fmt::format("configuration {} has no maximum over windows", config.name),
                  "it runs on the CPU; a configuration with extensions.window_maximum has it");
  }
  if (input.rank != 4 || output.rank != 4 || input.c != output.c)
    return refuse(layer, "the pool's output has other channels than its input");
  if (layer.dilation_y != 1 || layer.dilation_x != 1) {
    return refuse(layer,
                  fmt::format("the dilation of the window is {}, {}, must be 1: its columns are neighbours in acc",
                              layer.dilation_y, layer.dilation_x));
  }
  constexpr int64_t kMaxWindow = 7, kMaxStride = 64;
  for (const int64_t x : {layer.kernel_h, layer.kernel_w}) {
    if (x < 1 || x > kMaxWindow)
      return refuse(layer,
                    fmt::format("the window is {} x {}, RQ holds 1 .. {}", layer.kernel_h, layer.kernel_w, kMaxWindow));
  }
  for (const int64_t x : {layer.stride_y, layer.stride_x}) {
    if (x < 1 || x > kMaxStride)
      return refuse(layer, fmt::format("a stride of the window is {}, must be 1 .. {}", x, kMaxStride));
  }
  const auto inside = [](int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t count) {
    const auto has_positions = [&](int64_t nth) {
      return pooled_positions(size, kernel, stride, pad, {nth, nth + 1}).size() > 0;
    };
    return pad >= 0 && has_positions(0) && has_positions(count - 1);
  };
  if (!inside(input.h, layer.kernel_h, layer.stride_y, layer.pad_top, output.h) ||
      !inside(input.w, layer.kernel_w, layer.stride_x, layer.pad_left, output.w)) {
    return refuse(layer, "a window of the pool is outside of its map", "correct the shape or the pads");
  }
  const int64_t least = pool_accumulators(layer);
  if (least > config.depth(spec::Memory::kAcc)) {
    return refuse(layer, fmt::format("a window of {} x {} needs {} accumulators, and acc has {}", layer.kernel_h,
                                     layer.kernel_w, least, config.depth(spec::Memory::kAcc)));
  }
  // A strip is at least one window wide, whose vectors are loaded together.
  const int64_t columns = std::min(layer.kernel_w, input.w);
  if (columns > config.depth(spec::Memory::kInp)) {
    return refuse(layer, fmt::format("a window of {} columns needs {} vectors, and inp has {}", layer.kernel_w, columns,
                                     config.depth(spec::Memory::kInp)));
  }
  return {};
}

// Whether the tensor has the matrices of `batch` products: as images, or as groups of channels.
Status supports_products(const spec::Config& config, const Layer& layer, const RegionTensor& t) {
  if (layer.batch % t.n != 0 || t.c % (layer.batch / t.n) != 0) {
    return refuse(layer, fmt::format("tensor {} has {} images of {} channels, which are not {} matrices", t.name, t.n,
                                     t.c, layer.batch));
  }
  const int64_t groups = layer.batch / t.n, channels = t.c / groups;
  if (groups > 1 && channels % lane_block(config) != 0) {
    return refuse(layer, fmt::format("a group of channels of tensor {} has {} of them, must be a multiple of {}",
                                     t.name, channels, lane_block(config)));
  }
  return {};
}

Status supports_matmul(const spec::Config& config, const Layer& layer, const RegionTensor& input,
                       const RegionTensor& output, const RegionTensor& weights) {
  if (layer.batch < 1) return refuse(layer, fmt::format("the batch is {}, must be at least 1", layer.batch));
  for (const RegionTensor* t : {&input, &output, &weights}) {
    if (t->rank == 4 || t->h != 1) return refuse(layer, fmt::format("tensor {} is a map, must be matrices", t->name));
  }
  const int64_t groups = layer.weight_groups;
  if (groups < 1 || weights.w % groups != 0 || (groups > 1 && weights.n * groups != layer.batch)) {
    return refuse(layer, fmt::format("{} images of {} positions in {} groups are no weights of {} products", weights.n,
                                     weights.w, groups, layer.batch));
  }
  for (const RegionTensor* t : {&input, &output}) TENON_TRY(supports_products(config, layer, *t));
  if (groups == 1) TENON_TRY(supports_products(config, layer, weights));
  const auto channels = [&](const RegionTensor& t) { return t.n * t.c / layer.batch; };
  const int64_t terms = groups > 1 ? weights.c : channels(weights), columns = weights.w / groups;
  if (input.w != output.w || channels(input) != terms || columns != channels(output)) {
    return refuse(layer,
                  fmt::format("matrices of {} x {} and {} x {} have no product of {} x {}", input.w, channels(input),
                              terms, columns, output.w, channels(output)),
                  "correct the shape");
  }
  return {};
}

}  // namespace

int64_t pool_accumulators(const Layer& pool) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(pool.kernel_h)) *
                              std::bit_ceil(static_cast<uint64_t>(pool.kernel_w)));
}

runtime::Shape boundary_shape(const RegionTensor& t, Layout layout, const spec::Config& config) {
  if (layout == Layout::kRows) return {t.n, t.h, t.w, t.c};
  const int64_t block = lane_block(config);
  if (t.rank == 3) {
    runtime::Shape shape{t.n, ceil_div(t.c, block), t.w, block};
    if (t.outer != 0) shape.insert(shape.begin(), t.outer), shape[1] /= t.outer;
    return shape;
  }
  if (t.rank == 2)
    return t.w == 1 && !t.transposed ? runtime::Shape{1, ceil_div(t.c, block), block}
                                     : runtime::Shape{ceil_div(t.c, block), t.w, block};
  return {t.n, ceil_div(t.c, block), t.h, t.w, block};
}

bool gains_by_unfolding(const Layer& layer, const RegionTensor& input, const spec::Config& config) {
  if (input.rank != 4 || layer.kind != LayerKind::kConv2d || layer.groups != 1 || layer.kernel_w == 1 ||
      layer.dilation_x != 1)
    return false;
  const int64_t lanes = layer.kernel_w * input.c;
  if (lanes > kMaxLeftBytes || layer.pad_left * input.c > kMaxLeftBytes || layer.stride_x * input.c > kMaxStepBytes)
    return false;
  return ceil_div(lanes, config.block_in) < ceil_div(input.c, config.block_in) * layer.kernel_w;
}

bool has_block_groups(const spec::Config& config, const Layer& layer, const RegionTensor& input,
                      const RegionTensor& output) {
  if (layer.groups == 1) return false;
  const int64_t block = lane_block(config), in = input.c / layer.groups, out = output.c / layer.groups;
  return (in == out && block % in == 0) || (in % block == 0 && out % block == 0);
}

Layout boundary_layout(const Region& region, int tensor, const spec::Config& config) {
  if (std::find(region.inputs.begin(), region.inputs.end(), tensor) == region.inputs.end()) return Layout::kBlocked;
  if (std::find(region.outputs.begin(), region.outputs.end(), tensor) != region.outputs.end()) return Layout::kBlocked;
  bool used = false;
  for (const Layer& layer : region.layers) {
    if (layer.residual == tensor) return Layout::kBlocked;
    if (layer.input != tensor) continue;
    if (!gains_by_unfolding(layer, region.tensors[tensor], config)) return Layout::kBlocked;
    used = true;
  }
  return used ? Layout::kRows : Layout::kBlocked;
}

Status supports(const spec::Config& config, const Layer& layer, const RegionTensor& input, const RegionTensor& output,
                const RegionTensor* weights) {
  if (!config.native) return refuse(layer, fmt::format("configuration {} has no native profile", config.name));
  for (const RegionTensor* t : {&input, &output, weights}) {
    if (!t) continue;
    if (t->n < 1 || t->c < 1 || t->h < 1 || t->w < 1) {
      return refuse(layer, fmt::format("tensor {} has shape ({}, {}, {}, {}), every dimension must be at least 1",
                                       t->name, t->n, t->c, t->h, t->w));
    }
    if (blocked_bytes(*t, config) >= kMaxTensorBytes) {
      return refuse(layer, fmt::format("tensor {} has {} bytes, a transfer's offset holds 2^32", t->name,
                                       blocked_bytes(*t, config)));
    }
  }
  if (layer.kind == LayerKind::kMatmul) {
    if (!weights) return refuse(layer, "a matmul has no tensor of weights");
    return supports_matmul(config, layer, input, output, *weights);
  }
  // Of flattened maps, the rows of the matrix are the images.
  const bool flattened = input.rank == 4 && output.rank == 2;
  const int64_t batch = flattened ? output.w : output.n;
  if (input.n != batch) return refuse(layer, fmt::format("batch {} in, {} out", input.n, batch));
  switch (layer.kind) {
    case LayerKind::kAdd:
      if (input.c != output.c || input.h != output.h || input.w != output.w) {
        return refuse(layer, "an add whose operands have different shapes");
      }
      return {};
    case LayerKind::kGlobalSumPool:
      if (input.c != output.c || output.h != 1 || output.w != 1)
        return refuse(layer, "the pool's output is not (n, c, 1, 1)");
      return {};
    case LayerKind::kMaxPool2d: return supports_pool(config, layer, input, output);
    case LayerKind::kMatmul:
    case LayerKind::kConv2d: break;
  }
  if (layer.groups < 1 || input.c % layer.groups != 0 || output.c % layer.groups != 0)
    return refuse(layer, fmt::format("groups is {}, must divide the {} input channels and the {} output channels",
                                     layer.groups, input.c, output.c));
  if (layer.groups > kMostDenseGroups && !has_block_groups(config, layer, input, output)) {
    return refuse(layer,
                  fmt::format("groups is {}, must be at most {} where the channels of a group, {} and {}, are no "
                              "multiples of {}, nor equal and divide it",
                              layer.groups, kMostDenseGroups, input.c / layer.groups, output.c / layer.groups,
                              lane_block(config)));
  }
  for (const int64_t x :
       {layer.kernel_h, layer.kernel_w, layer.stride_y, layer.stride_x, layer.dilation_y, layer.dilation_x}) {
    if (x < 1) return refuse(layer, fmt::format("a kernel, stride or dilation is {}, must be at least 1", x));
  }
  for (const int64_t x : {layer.pad_top, layer.pad_left, layer.pad_bottom, layer.pad_right}) {
    if (x < 0) return refuse(layer, fmt::format("a pad is {}, must be at least 0", x));
  }
  const int64_t block = lane_block(config);
  if (layer.pad_top > kMaxTop)
    return refuse(layer, fmt::format("the top pad is {}, MOVE holds {}", layer.pad_top, kMaxTop));
  if (layer.pad_left * block > kMaxLeftBytes) {
    return refuse(layer,
                  fmt::format("the left pad is {} x {} bytes, MOVE holds {}", layer.pad_left, block, kMaxLeftBytes));
  }
  if (layer.stride_x * block > kMaxStepBytes) {
    return refuse(layer,
                  fmt::format("the stride is {} x {} bytes, MOVE holds {}", layer.stride_x, block, kMaxStepBytes));
  }
  if (layer.stride_y * input.w * block >= kMaxTensorBytes) return refuse(layer, "the stride exceeds 2^32 bytes");
  const auto extent = [](int64_t in, int64_t pads, int64_t kernel, int64_t dilation, int64_t stride) {
    const int64_t room = in + pads - (kernel - 1) * dilation - 1;
    return room < 0 ? 0 : room / stride + 1;
  };
  const int64_t h = extent(input.h, layer.pad_top + layer.pad_bottom, layer.kernel_h, layer.dilation_y, layer.stride_y);
  const int64_t w = extent(input.w, layer.pad_left + layer.pad_right, layer.kernel_w, layer.dilation_x, layer.stride_x);
  const int64_t out_w = flattened ? 1 : output.w;
  if (h != output.h || w != out_w) {
    return refuse(layer, fmt::format("the output is {} x {}, the convolution computes {} x {}", output.h, out_w, h, w),
                  "correct the shape");
  }
  return {};
}

Status check_boundary_tensor_count(int64_t tensors, const std::string& region) {
  constexpr int64_t kLeft = spec::kBases - runtime::kBaseFirstTensor;
  if (tensors <= kLeft) return {};
  return error(fmt::format("the region has {} inputs and outputs, base registers are available for {}", tensors, kLeft),
               region, "split the region");
}

Status validate(const spec::Config& config, const Region& region) {
  const auto valid = [&](int t) { return t >= 0 && t < static_cast<int>(region.tensors.size()); };
  const auto boundary = static_cast<int64_t>(region.inputs.size() + region.outputs.size());
  TENON_TRY(check_boundary_tensor_count(boundary, region.name));
  std::vector<bool> computed(region.tensors.size(), false), listed(region.tensors.size(), false);
  for (const int t : region.inputs) {
    if (!valid(t) || computed[t])
      return error(fmt::format("input {} is not a tensor, or is listed twice", t), region.name);
    computed[t] = true;
  }
  for (const Layer& layer : region.layers) {
    const std::array<int, 2> optional{layer.residual, layer.computed_weights};
    if (!valid(layer.input) || !valid(layer.output) ||
        !std::ranges::all_of(optional, [&](int t) { return t == -1 || valid(t); })) {
      return error("a tensor index is out of range", layer.name);
    }
    if (!computed[layer.input] || !std::ranges::all_of(optional, [&](int t) { return t == -1 || computed[t]; })) {
      return error("a layer reads a tensor before it is computed", layer.name, "sort the layers");
    }
    if (computed[layer.output]) return error("two layers write one tensor, or one writes an input", layer.name);
    computed[layer.output] = true;
    const RegionTensor& in = region.tensors[layer.input];
    const RegionTensor& out = region.tensors[layer.output];
    const bool matmul = layer.kind == LayerKind::kMatmul;
    if (matmul != (layer.computed_weights != -1))
      return error("a matmul has a tensor of weights, no other layer has one", layer.name);
    TENON_TRY(supports(config, layer, in, out, matmul ? &region.tensors[layer.computed_weights] : nullptr));
    if (const int64_t channels = layer.kind == LayerKind::kMaxPool2d ? 0
                                 : matmul                            ? out.n * out.c / layer.batch
                                                                     : out.c;
        static_cast<int64_t>(layer.channels.size()) != channels) {
      return error(fmt::format("{} channel parameters for {} channels", layer.channels.size(), channels), layer.name);
    }
    const int64_t weights =
        layer.kind == LayerKind::kConv2d ? out.c * (in.c / layer.groups) * layer.kernel_h * layer.kernel_w : 0;
    if (static_cast<int64_t>(layer.weights.size()) != weights) {
      return error(fmt::format("{} weights, must be {}", layer.weights.size(), weights), layer.name);
    }
    if (layer.parameters.residual != (layer.residual != -1)) {
      return error("the residual tensor and the requantization's residual flag disagree", layer.name);
    }
    if (layer.kind == LayerKind::kMaxPool2d && layer.residual != -1) return error("a pool has no residual", layer.name);
    if (layer.residual != -1) {
      const RegionTensor& r = region.tensors[layer.residual];
      if (r.n != out.n || r.c != out.c || r.h != out.h || r.w != out.w) {
        return error("the residual has another shape than the output", layer.name);
      }
    }
  }
  for (const int t : region.outputs) {
    if (!valid(t) || !computed[t] || listed[t])
      return error(fmt::format("output {} is not computed, or is listed twice", t), region.name);
    if (std::find(region.inputs.begin(), region.inputs.end(), t) != region.inputs.end()) {
      return error(fmt::format("output {} is an input", t), region.name);
    }
    listed[t] = true;
  }
  return {};
}

}  // namespace tenon::compiler::accel
