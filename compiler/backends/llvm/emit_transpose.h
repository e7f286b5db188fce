// Tiles of accumulators that are stored transposed: to[a + column, b + row] = from[row, column].
//
// Accumulators are stored from their registers by rows, and one LLVM function for all kernels of a level transposes
// them in memory: a copy of it for each tile would take more compilation than the tile's own loops.
#pragma once

#include <vector>

#include "compiler/backends/llvm/emit_frame.h"
#include "compiler/backends/llvm/emit_index.h"

namespace tenon::compiler::native {

class TransposeEmitter : EmitterPart {
 public:
  TransposeEmitter(FrameEmitter& frames, IndexEmitter& indices) : EmitterPart(frames), indices_(indices) {}

  // Emits the loop if it is such a store; otherwise returns false.
  bool emit(const loop::For& outer);

 private:
  // The transposed store of a tile: both buffers are stack memory of constant sizes.
  struct Tile {
    BufferId from{}, to{};
    Dim row, column;                           // of the tile in `to`
    int64_t rows = 0, columns = 0, width = 0;  // of the tile, and columns of `to`
  };

  std::optional<Tile> find_tile(const loop::For& outer);
  int64_t lanes() const;
  llvm::Function* transpose_function();
  std::vector<Value*> transposed(llvm::IRBuilder<>& b, const std::vector<Value*>& rows) const;

  IndexEmitter& indices_;
};

}  // namespace tenon::compiler::native
