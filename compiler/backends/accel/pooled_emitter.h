// Emits max pooling (pooled.h) by the parts of the emitter of the layer that computes its map.
#pragma once

#include <cstdint>
#include <span>

#include "compiler/backends/accel/layer_emitter.h"
#include "compiler/backends/accel/pooled.h"

namespace tenon::compiler::accel {

class PooledEmitter {
 public:
  PooledEmitter(TileProgram& program, uint32_t index, std::span<const Operands> layers, const Tiling& tiling);

  void run();

 private:
  // Columns of outputs, and what is computed for them.
  struct Strip {
    int64_t image = 0;
    Range blocks = {}, cols = {};
    Range map_rows = {}, map_cols = {};
    int64_t slot = 0;  // of the first row, counted on from strip to strip
  };

  void emit_strip(Strip strip);
  // Requantizes and stores rows of outputs of a block.
  void emit_outputs(const Strip& strip, int64_t block, Range rows, int64_t par);
  int64_t acc_of_row(int64_t slot) const { return slot % plan_.slots * plan_.pitch; }

  TileProgram& p_;
  const Tiling tiling_;
  const PooledPlan plan_;
  const Operands& pool_;
  LayerEmitter map_;
  LayerEmitter pooled_;  // for the addresses of the output
  int64_t next_slot_ = 0;
};

}  // namespace tenon::compiler::accel
