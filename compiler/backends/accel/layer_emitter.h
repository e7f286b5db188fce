// Emits the tile operations of one layer: the loads, products, requantizations and stores of its tiles. Its parts are
// those of fused layers too (fused_emitter.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "compiler/backends/accel/moves.h"
#include "compiler/backends/accel/tile_program.h"

namespace tenon::compiler::accel {

// Calls f for consecutive ranges of at most `step` that cover [0, extent).
template <class F>
void for_ranges(int64_t extent, int64_t step, const F& f) {
  for (int64_t begin = 0; begin < extent; begin += step) f(Range{begin, std::min(begin + step, extent)});
}

// The factor of a loop's counter in an address; 0 for a loop with one trip, where it may not fit its field.
inline int64_t loop_factor(int64_t trips, int64_t factor) { return trips > 1 ? factor : 0; }

// Where the accumulators of a tile are: the first one, and the distances of rows and of blocks.
struct AccTile {
  int64_t base = 0, row = 1, block = 1;
};

class LayerEmitter {
 public:
  LayerEmitter(TileProgram& program, uint32_t index, const Operands& operands, const Tiling& tiling);

  void run();

  const Contraction& contraction() const { return c_; }
  const Tiling& tiling() const { return t_; }

  // Each returns the first element of what is loaded, and emits nothing where it is there already. The instructions
  // that use it must follow before the next load into the same scratchpad.
  int64_t load_input(const OutputTile& tile, const Chunk& chunk, const Window& w, Range blocks);
  int64_t load_weights(Range blocks, const Chunk& chunk);
  int64_t load_computed_weights(const OutputTile& tile, const Chunk& chunk);
  int64_t load_parameters(Range blocks);

  // The loads and products of a tile, and nothing that follows them.
  void emit_products(const OutputTile& tile, const AccTile& acc);

  // The products of a chunk by own lanes: a command for each window of its kernel and rows of outputs. `inp` and `wgt`
  // are the first elements of the tile's blocks.
  void emit_own(const OutputTile& tile, const Chunk& chunk, const Window& w, const AccTile& acc, int64_t inp,
                int64_t wgt, bool first);

  // Requantizes and stores a part of a tile's block; `acc` is the first accumulator of the tile.
  void emit_subtile(const OutputTile& tile, int64_t block, Range rows, Range cols, int64_t acc, int64_t par);

  // RQ with the parameters of the layer, and nothing else.
  spec::native::Requantize requantize() const;

  // `text` makes the text, which a sketch has not.
  template <class F>
  void push(spec::Instruction instruction, const F& text) {
    p_.ops_.push_back({std::move(instruction), index_, p_.sketch_ ? std::string() : text()});
  }
  std::string text(const OutputTile& tile, const Chunk& chunk) const;

 private:
  // The elements at which a block's operands of a chunk begin, and the distance of its rows of accumulators.
  struct Bases {
    int64_t dst, dst_row, src, wgt;
  };

  void run_images(Range images);
  void emit_tile(const OutputTile& tile);
  void emit_chunk(const OutputTile& tile, const Chunk& chunk, const AccTile& acc, bool first);
  // The products of a window of the kernel for these rows of a tile, by own lanes.
  void emit_window(const OutputTile& tile, const Chunk& chunk, const Window& w, const OwnWindow& window, Range rows,
                   const Bases& bases, bool first, int64_t block);
  // The input blocks that a chunk of a tile reads.
  Range input_blocks(const OutputTile& tile, const Chunk& chunk) const;
  int64_t first_input_block(int64_t out_block, const Chunk& chunk) const;
  // The index of a block's weights among the tile's weights.
  int64_t weight_index(Range blocks, int64_t block, const Chunk& chunk) const;
  // The offset of the constants that `pack` makes; a sketch only reserves their size.
  template <class F>
  int64_t constant(int64_t size, const F& pack);
  static std::string shifted(Range range, Range tile);

  TileProgram& p_;
  const uint32_t index_;
  const Operands& operands_;
  const Contraction c_;
  const Tiling t_;
  std::map<std::array<int64_t, 6>, std::pair<int64_t, int64_t>> packed_;      // chunk -> constant's offset and size
  std::map<std::array<int64_t, 2>, std::pair<int64_t, int64_t>> parameters_;  // blocks -> the same
};

}  // namespace tenon::compiler::accel
