// A layer in the form of the tensor core: blocks of output lanes, each a sum of products of input blocks and weights
// over a kernel; and the location of its input in DRAM. Every kind of layer becomes a Contraction, so there is one
// tiling and one emitter.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/backends/accel/layer.h"
#include "hw/spec/memory_timing.h"

namespace tenon::compiler::accel {

// The largest value of the field row_bytes of a transfer.
inline constexpr int64_t kMaxRowBytes = 65535;
// Those of the extents and factors of products, which a smaller tile satisfies.
inline constexpr int64_t kMaxExtent = 1023, kMaxFactor = 4095;

// What an instruction, a row of a transfer and a requantization cost beyond their work, in cycles of their engine, and
// an instruction of the bus in bytes; estimates that only rank tilings.
inline constexpr double kInstructionCycles = 8, kRowCycles = 2, kRequantizeCycles = 14, kInstructionBytes = 32;

struct Contraction {
  // Iteration space. An output block is block_out lanes, a reduction step one input block of block_in lanes.
  int64_t n = 1, out_h = 1, out_w = 1;
  int64_t out_blocks = 1;  // as many as in DRAM: lanes beyond the channels are computed too
  int64_t steps = 1;       // input blocks per output block
  int64_t kernel_h = 1, kernel_w = 1, stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  int64_t pad_top = 0, pad_left = 0;
  int8_t pad_value = 0;
  // Diagonal: `group_out` output blocks have the same `group_in` input blocks, and no others have these (depthwise,
  // groups that are parts of a block or several blocks, add, pool). Shared: all kernel positions and output blocks use
  // the same weights (identity matrices).
  bool diagonal = false, shared = false;
  int64_t group_in = 1, group_out = 1;
  // Lanes multiply windows of the kernel of their own channel (`own` of mac), in `own_passes` steps each.
  bool own = false;
  int64_t own_passes = 1;
  bool residual = false;
  // The weights are a tensor, other ones for each image: `weight_rows` output channels of a row each, stored as an
  // input.
  bool computed_weights = false;
  int64_t weight_groups = 1;  // how many consecutive products share an image of the weights, as groups of positions
  int64_t weight_rows = 0, weight_plane_bytes = 0;
  int64_t channels = 0;  // of an image of the input, where lanes beyond them are loaded as 0; 0: they do not matter

  // The input in DRAM. Block b of position (y, x) has its first byte at
  //   image * image_bytes + block_offset(b) + y * width * pixel_bytes + (x * pixel_bytes + block_shift(b))
  // where only the sum in parentheses is compared with the row's bounds, for padding.
  bool unfolded = false;
  int64_t height = 1, width = 1, pixel_bytes = 1, image_bytes = 0, plane_bytes = 0;
  int64_t block_in = 1, block_out = 1, lane_block = 1;
  int64_t unfolded_bytes = 0;  // kernel_w * channels, if unfolded

  // Between images and between blocks of the output in DRAM. The images of flattened maps become the rows of a matrix.
  int64_t out_image_bytes = 0, out_plane_bytes = 0;

  int64_t block_offset(int64_t b) const {
    const int64_t parts = lane_block / block_in;
    return unfolded ? 0 : b / parts * plane_bytes + b % parts * block_in;
  }
  int64_t weight_offset(int64_t product) const {
    const int64_t image_bytes = ceil_div(channels, lane_block) * weight_plane_bytes;
    return product / weight_groups * image_bytes + product % weight_groups * weight_rows * lane_block;
  }
  int64_t block_shift(int64_t b) const { return unfolded ? b * block_in : 0; }
  int64_t block_valid(int64_t b) const {  // 0: all lanes
    const int64_t remaining = (unfolded ? unfolded_bytes : channels) - b * block_in;
    return (unfolded || channels != 0) && remaining < block_in ? remaining : 0;
  }
  // Steps of the tensor core, with own lanes for rows that are not divided.
  int64_t gemm_cycles() const;
};

// A part of a kernel whose positions are the window of own lanes in one command; `row` and `col` are in the chunk of
// the kernel.
struct OwnWindow {
  int64_t row = 0, col = 0, rows = 1, cols = 1;
};
struct Tiling;
std::vector<OwnWindow> own_windows(const Contraction& c, int64_t kernel_h, int64_t kernel_w);

// The commands for a window and a row of outputs. With a dilation of several strides, windows share columns at a
// distance of dilation / stride outputs, and each command computes outputs at that distance.
int64_t own_phases(const Contraction& c, const OwnWindow& window, int64_t cols, int64_t kernel_w);

// The rows of outputs that a command has for each window of a chunk of this size. Where there are several windows, all
// of them follow each other for a sub-tile: the requantizer gets few reads of acc while products are added to what is
// there, which all windows but the first do, and so it gets some of them for each sub-tile.
int64_t own_command_rows(const Contraction& c, const Tiling& t, int64_t kernel_h, int64_t kernel_w);

// The commands of own lanes for a tile of one block and a chunk of the kernel of this size.
int64_t own_commands(const Contraction& c, const Tiling& t, int64_t kernel_h, int64_t kernel_w);

// The steps of own lanes for `rows` x `cols` outputs of one block and a chunk of the kernel of this size.
int64_t own_steps(const Contraction& c, int64_t rows, int64_t cols, int64_t kernel_h, int64_t kernel_w);

// `rows`: the input is rows, not blocked (layer.h).
Contraction contraction(const spec::Config& config, const Layer& layer, const RegionTensor& input,
                        const RegionTensor& output, bool rows);

// The weight of input lane `in` of reduction step `step` and output lane `out` of output block `block`, at kernel
// position (ky, kx) of the contraction.
int8_t weight_at(const Contraction& c, const Layer& layer, const RegionTensor& input, const RegionTensor& output,
                 int64_t block, int64_t step, int64_t ky, int64_t kx, int64_t out, int64_t in);

// The tile sizes of a contraction. Output tiles are out_blocks x rows x cols; their reduction is split into chunks of
// steps x kernel rows x kernel columns.
struct Tiling {
  int64_t out_blocks = 1, rows = 1, cols = 1;
  int64_t steps = 1, kernel_h = 1, kernel_w = 1;
  bool weights_outer = true;                   // loop order: weight-stationary, or input-stationary
  int64_t subtile_rows = 1, subtile_cols = 1;  // the block of one requantization and one store
  double cycles = 0;                           // estimated by the cost function
  double instructions = 0;                     // estimated likewise
};

// Sets the sizes of sub-tiles: two of them at a time in out, and in res, so that one is stored while the next is
// requantized.
void set_subtiles(const spec::Config& config, const Contraction& c, Tiling& tiling);

// The input vectors that a chunk of this size reads.
struct Window {
  int64_t rows, cols;          // in the scratchpad
  int64_t row_step, col_step;  // positions of the map from row to row, column to column
};
Window window(const Contraction& c, int64_t rows, int64_t cols, int64_t kernel_h, int64_t kernel_w);

// Input blocks and weight elements that a chunk of an output tile occupies.
int64_t chunk_input_blocks(const Contraction& c, int64_t out_blocks, int64_t steps);
int64_t chunk_weights(const Contraction& c, int64_t out_blocks, int64_t steps, int64_t kernel_h, int64_t kernel_w);

// The candidate sizes of a dimension: equal parts, as a smaller last part wastes cycles; down to 1.
std::vector<int64_t> candidate_sizes(int64_t extent);

// Whether the scratchpads, and the fields of instructions, hold a chunk of a tile; acc and what is stored aside.
bool chunk_fits(const spec::Config& config, const Contraction& c, const Tiling& tiling);

// At most `count` tilings that fit and are of different kinds, the cheapest by the estimate first; at least one. An
// exhaustive search over a few sizes a dimension, deterministic.
std::vector<Tiling> candidate_tilings(const spec::Config& config, const Contraction& c, size_t count,
                                      const spec::MemoryTiming& memory = {});

}  // namespace tenon::compiler::accel
