// The input of the accelerator's back end: a region of layers over int8 activation tensors, independent of the IR.
//
// Semantics of a layer, for each image n, output channel o and position (y, x):
//   conv2d           acc = sum over c, ky, kx of input[c][y * stride_y - top + ky * dilation_y][...] *
//   weight[o][c][ky][kx],
//                    pad_value where the position is outside the map; c counts the channels of the group of o. A dense
//                    layer is a 1x1 convolution of a map of one row, whose positions are the rows of the matrix.
//   add              acc = input[o][y][x]; the other operand, if there is one, is the residual
//   global_sum_pool  acc = sum of input[o] over the map
//   matmul           `batch` products of two activations, p of them: acc = sum over i of input_p[i][x] *
//                    weights_p[i][o], each a matrix whose rows are positions (w) and whose columns are channels (c):
//                    the channels of the output are the positions of the weights. Zero points are 0. The products are
//                    the images of a tensor, or the groups of its channels in order, which are whole blocks then; with
//                    `weight_groups`, those of the weights are groups of positions
//   max_pool2d       output = the maximum of input[o] over the positions of the window that are inside the map; the
//                    kernel, strides and pads are those of the window, and there is no requantization
//   output = requantize(acc, channels[o], parameters, residual[o][y][x])   (hw/spec/requantize.h; acc wraps)
//
// Layout in DRAM, between layers and at the boundary: blocked, [n][ceil(c / B)][h][w][B] int8 with B =
// lane_block(config); the lanes beyond c may hold any value, on which no lane below c depends: products of activations
// load 0 instead. So the images of a tensor whose channels are whole blocks are stored like the groups of channels of
// one image. An input that only first convolutions with few channels read may be stored as rows instead, [n][h][w][c]:
// the load then unfolds kernel_w * c bytes into the lanes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/spec/config.h"
#include "hw/spec/requantize.h"
#include "runtime/tensor.h"
#include "support/diagnostic.h"

namespace tenon::compiler::accel {

inline constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

enum class LayerKind : uint8_t { kConv2d, kAdd, kGlobalSumPool, kMaxPool2d, kMatmul };

struct RegionTensor {
  std::string name;
  int64_t n = 1, c = 1, h = 1, w = 1;
  int rank = 4;  // 2: a matrix (w, c) of the model, stored as a map of one row (n and h are 1); 3: n matrices, the same
  int64_t outer = 0;        // of rank 3: the model's tensor is (outer, n / outer, w, c); 0: (n, w, c)
  bool transposed = false;  // of rank 2 and 3: the model's matrices are (c, w)
  bool operator==(const RegionTensor&) const = default;
};

struct Layer {
  std::string name;  // the model's node
  std::string op;    // the composite's name, for notes: "accel.conv2d"
  LayerKind kind = LayerKind::kConv2d;
  int input = 0, residual = -1,
      output = 0;  // indices into Region::tensors; residual is set exactly where `parameters` says so

  int64_t kernel_h = 1, kernel_w = 1, stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1, groups = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int8_t pad_value = 0;         // the input's zero point
  std::vector<int8_t> weights;  // [o][c / groups][kernel_h][kernel_w]; of conv2d alone
  int computed_weights = -1;    // of matmul: the index of the tensor that is the weights
  int64_t batch = 1;            // of matmul: the products
  int64_t weight_groups = 1;    // of matmul: how many consecutive products have weights in one image (of its positions)

  std::vector<spec::ChannelParameters> channels;  // one an output channel; empty for max_pool2d
  spec::LayerParameters parameters;
};

enum class Layout : uint8_t { kBlocked, kRows };

struct Region {
  std::string name;
  std::vector<RegionTensor> tensors;
  std::vector<Layer> layers;         // in topological order
  std::vector<int> inputs, outputs;  // boundary tensors, in the order of the region's parameters and results
};

// Lanes of a block in DRAM. With the larger of the two, every vector that the accelerator loads or stores is inside one
// block, and MOVE addresses a smaller vector as a part of it by x_step and offset.
inline int64_t lane_block(const spec::Config& config) { return std::max(config.block_in, config.block_out); }

// The shape of a boundary tensor as the caller passes it.
runtime::Shape boundary_shape(const RegionTensor& tensor, Layout layout, const spec::Config& config);

// The layout in which region input or output `tensor` crosses the boundary: rows where this makes first convolutions
// cheaper, else blocked. The function is deterministic, so that partitioning and code generation agree.
Layout boundary_layout(const Region& region, int tensor, const spec::Config& config);

// Groups that are no blocks (has_block_groups) are one dense layer, zeros included; more than these are refused.
inline constexpr int64_t kMostDenseGroups = 8;
// Whether groups are parts of a block of channels, or whole blocks, so that a block of results depends on the inputs of
// its groups alone. Depthwise convolutions have groups of one channel.
bool has_block_groups(const spec::Config& config, const Layer& layer, const RegionTensor& input,
                      const RegionTensor& output);

// The accumulators that one window of a pool needs: rows at distances of powers of two, and a power of two of them
// (pooled.h).
int64_t pool_accumulators(const Layer& pool);

// Whether the load of this convolution can unfold the kernel's columns into lanes, and gains by it.
bool gains_by_unfolding(const Layer& layer, const RegionTensor& input, const spec::Config& config);

// Succeeds if the accelerator supports this layer; the error says why it does not. Absent weights are not checked.
// `weights` are those of a matmul.
Status supports(const spec::Config& config, const Layer& layer, const RegionTensor& input, const RegionTensor& output,
                const RegionTensor* weights = nullptr);

// Fails where the inputs and outputs of a region need more base registers than are available.
Status check_boundary_tensor_count(int64_t tensors, const std::string& region);

// Checks the region as a whole: indices, shapes, sizes of weights and parameters, supports() of each layer.
Status validate(const spec::Config& config, const Region& region);

}  // namespace tenon::compiler::accel
