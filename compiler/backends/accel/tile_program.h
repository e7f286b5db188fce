// The tile program: a region as a sequence of loads, matrix products, requantizations and stores over explicit regions
// of the scratchpads. Instructions have no tokens yet (tokens.h adds them); program order is the meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/backends/accel/contraction.h"
#include "compiler/backends/accel/scratchpad.h"
#include "hw/spec/isa.h"

namespace tenon::compiler::accel {

// Weights and parameters in the order in which they are loaded; equal ones are kept once.
class ConstantPool {
 public:
  int64_t add(const std::vector<std::byte>& bytes);  // returns the offset
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
  std::multimap<uint64_t, std::pair<int64_t, int64_t>> known_;  // hash -> offset, size
};

struct TileOp {
  spec::Instruction instruction;
  uint32_t layer = 0;
  std::string text;  // "load inp steps 0..3 rows 0..13 cols 0..55"
};

// Where a tensor lies: `offset` bytes behind a base register.
struct Location {
  int base = 0;
  int64_t offset = 0;
};

// Emits layers one after the other; the scratchpads' contents go on from layer to layer.
class TileProgram {
 public:
  explicit TileProgram(const spec::Config& config);

  struct Operands {
    const Layer& layer;
    const RegionTensor& input;
    const RegionTensor& output;
    bool rows_input = false;
    Location input_at, residual_at, output_at;
  };
  void emit(uint32_t layer_index, const Operands& operands);

  std::vector<TileOp>& ops() { return ops_; }
  ConstantPool& constants() { return constants_; }

 private:
  class LayerEmitter;

  const spec::Config config_;
  ScratchpadRing inp_, wgt_, acc_, out_, par_, res_;
  ConstantPool constants_;
  std::vector<TileOp> ops_;
};

}  // namespace tenon::compiler::accel
