// Transfers of a tile as MOVE instructions: loads of an input window or of constants, and stores of an output sub-tile,
// with as few instructions as their addresses in DRAM allow.
#pragma once

#include <vector>

#include "compiler/backends/accel/constants.h"
#include "compiler/backends/accel/contraction.h"
#include "hw/spec/isa.h"

namespace tenon::compiler::accel {

// A part of a layer's output.
struct OutputTile {
  int64_t image;
  Range blocks, rows, cols;
};

// The input vectors of a chunk of a tile, for the scratchpad from element `base` on, block after block.
struct InputMove {
  spec::native::Move move;
  Range blocks;  // that it loads
};
std::vector<InputMove> input_moves(const Contraction& c, const Location& at, const OutputTile& tile, const Chunk& chunk,
                                   const Window& w, Range blocks, int64_t base);

// The weights of a chunk of a tile where they are a tensor, for the scratchpad from element `base` on: for each step of
// the reduction the elements of the tile's blocks.
std::vector<spec::native::Move> weight_moves(const Contraction& c, const Location& at, const OutputTile& tile,
                                             Range steps, int64_t base);

// `count` contiguous elements of constants, in as few rows as the fields and the count allow.
spec::native::Move dense_move(spec::native::MoveFunction function, int64_t base, int64_t offset, int64_t count,
                              int64_t element, int64_t unit);

// A transfer between a sub-tile of a block's outputs and a blocked tensor of the output's shape.
spec::native::Move subtile_move(const Contraction& c, spec::native::MoveFunction function, const Location& at,
                                const OutputTile& tile, int64_t block, Range rows, Range cols);

}  // namespace tenon::compiler::accel
