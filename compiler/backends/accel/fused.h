// Fused layers: a depthwise convolution between pointwise ones, or before one, as a single walk over tiles of the last
// layer's outputs. The values between the layers stay in inp: RQ writes them there (`to_inp`), and GEMM reads them.
//
//   expand, depthwise, project    MobileNetV2's block; values of both layers inside stay on the chip
//   depthwise, pointwise          MobileNetV1's
//
// Semantics of the order: an item is a tile of outputs and a block of hidden channels. For each item, the positions of
// the hidden map that the tile's windows read are expanded and requantized into inp, and the depthwise convolution of
// these is requantized into inp. After each group of hidden blocks their product is added to the accumulators of all
// output blocks of the tile, which are requantized and stored after the last group. The steps of items are emitted
// one item after the other, so that GEMM does not wait for RQ: expand item i + 2, depthwise of i + 1, project i. RQ
// reads acc while GEMM begins sums, which reads nothing: so groups are large where inp has room for them. Positions at
// the edges of tiles are expanded for each tile that reads them. Positions outside of the map hold the depthwise
// layer's pad value, which a MOVE without DRAM writes where RQ has written before, and else is still there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/backends/accel/constants.h"

namespace tenon::compiler::accel {

// The outputs of a tile, of all output blocks.
struct FusedTiling {
  int64_t rows = 1, cols = 1;
  int64_t group = 1;                    // hidden blocks whose products are added by one command
  int64_t buffers = 2;                  // of the results of a group's depthwise convolutions
  double cycles = 0, instructions = 0;  // estimated
};

// Whether the first two of these layers, and the first three, can be fused, by their kinds and shapes alone. The caller
// knows that no other layer and no caller reads the values between them.
struct FusedLengths {
  bool two = false, three = false;
};
FusedLengths fused_lengths(const spec::Config& config, std::span<const Operands> layers);

// The parts of the scratchpads that a block of fused layers has, for tiles of this size.
struct FusedPlan {
  bool fits = false;
  Window window = {};        // of the depthwise layer
  int64_t hidden = 0;        // vectors of the hidden map in the window, with those outside the map; 0: from DRAM
  int64_t expanded = 0;      // of these, inside the map: accumulators
  int64_t input = 0;         // vectors that a tile loads at a time
  int64_t input_begin = 0;   // in inp, after two hidden windows and the buffers of results
  int64_t outputs = 1;       // accumulated output blocks: all of a tile or of two, or any number where a group is all
  int64_t weight_group = 1;  // hidden blocks whose weights are loaded by one MOVE
  int64_t output_group = 1;  // output blocks of the last layer, likewise
};
FusedPlan fused_plan(const spec::Config& config, std::span<const Operands> layers, const FusedTiling& tiling);

// At most `count` tilings that fit, the cheapest by an estimate first; none where no tile does.
std::vector<FusedTiling> fused_tilings(const spec::Config& config, std::span<const Operands> layers, size_t count);

}  // namespace tenon::compiler::accel
