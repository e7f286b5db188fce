// The tile program: a region as a sequence of loads, matrix products, requantizations and stores over explicit address
// ranges of the scratchpads. Instructions have no tokens yet (tokens.h adds them); program order defines the meaning.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/backends/accel/constants.h"
#include "compiler/backends/accel/contraction.h"
#include "compiler/backends/accel/scratchpad.h"
#include "hw/spec/isa.h"

namespace tenon::compiler::accel {

struct FusedTiling;

struct TileOp {
  spec::Instruction instruction;
  uint32_t layer = 0;
  std::string text;  // "load inp steps 0..3 rows 0..13 cols 0..55"
};

// Emits layers in sequence; the contents of the scratchpads persist from layer to layer.
class TileProgram {
 public:
  // A sketch has the instructions, but neither constants nor texts, which the cycle model does not need.
  explicit TileProgram(const spec::Config& config, bool sketch = false);

  // A layer that is not fused with others.
  void emit(uint32_t layer_index, const Operands& operands, const Tiling& tiling);
  // Layers that follow each other, of which `layer_index` is the first, as one: see fused.h.
  void emit_fused(uint32_t layer_index, std::span<const Operands> layers, const FusedTiling& tiling);
  // A pool, or the layer that computes its map and the pool: see pooled.h.
  void emit_pooled(uint32_t layer_index, std::span<const Operands> layers, const Tiling& tiling);

  std::vector<TileOp>& ops() { return ops_; }
  ConstantPool& constants() { return constants_; }

 private:
  friend class LayerEmitter;
  friend class FusedEmitter;
  friend class PooledEmitter;

  const spec::Config config_;
  const bool sketch_;
  ScratchpadRing inp_, wgt_, acc_, out_, par_, res_;
  ConstantPool constants_;
  std::vector<TileOp> ops_;
};

}  // namespace tenon::compiler::accel
