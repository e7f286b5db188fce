#include "compiler/backends/accel/tile_program.h"

#include "compiler/backends/accel/fused_emitter.h"
#include "compiler/backends/accel/layer_emitter.h"
#include "compiler/backends/accel/pooled_emitter.h"

namespace tenon::compiler::accel {

using spec::Memory;

TileProgram::TileProgram(const spec::Config& config, bool sketch)
    : config_(config),
      sketch_(sketch),
      inp_(config.depth(Memory::kInp)),
      wgt_(config.depth(Memory::kWgt)),
      acc_(config.depth(Memory::kAcc)),
      out_(config.depth(Memory::kOut)),
      par_(config.depth(Memory::kPar)),
      res_(config.depth(Memory::kRes)) {}

void TileProgram::emit(uint32_t layer_index, const Operands& operands, const Tiling& tiling) {
  if (operands.layer.kind == LayerKind::kMaxPool2d) emit_pooled(layer_index, {&operands, 1}, tiling);
  else LayerEmitter(*this, layer_index, operands, tiling).run();
}

void TileProgram::emit_fused(uint32_t layer_index, std::span<const Operands> layers, const FusedTiling& tiling) {
  FusedEmitter(*this, layer_index, layers, tiling).run();
}

void TileProgram::emit_pooled(uint32_t layer_index, std::span<const Operands> layers, const Tiling& tiling) {
  PooledEmitter(*this, layer_index, layers, tiling).run();
}

}  // namespace tenon::compiler::accel
