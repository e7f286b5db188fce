// Emits fused layers (fused.h) by the parts of the emitters of each layer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/backends/accel/fused.h"
#include "compiler/backends/accel/layer_emitter.h"

namespace tenon::compiler::accel {

class FusedEmitter {
 public:
  FusedEmitter(TileProgram& program, uint32_t index, std::span<const Operands> layers, const FusedTiling& tiling);

  void run();

 private:
  // A tile of outputs and a hidden block, with the buffers of this item and of this tile.
  struct Item {
    OutputTile tile;  // all output blocks
    int64_t block = 0;
    int64_t buffer = 0;     // of two
    int64_t nth_group = 0;  // of all items
    int64_t nth_tile = 0;
    Range rows = {}, cols = {};  // of the hidden map: positions inside that the window reads
    int64_t top = 0, left = 0;   // rows and columns of the window before these
    Window window = {};
    int64_t columns = 0;  // of the window that are read: one less where there is one for an odd pitch only
  };

  std::vector<Item> items() const;
  // The hidden blocks whose products are added with those of this one, and those whose weights are loaded with it.
  Range group(int64_t block) const;
  Range weight_group(int64_t block) const;
  void expand(const Item& item);
  void depthwise(const Item& item);
  void project(const Item& item);
  // Writes the pad value where it is read and is not yet.
  void pad(const Item& item);

  int64_t hidden_at(const Item& item) const { return item.buffer * plan_.hidden; }
  int64_t group_at(const Item& item) const {
    return 2 * plan_.hidden + item.nth_group % tiling_.buffers * tiling_.group * results_;
  }
  int64_t acc_of_hidden(const Item& item) const { return item.buffer * plan_.expanded; }
  int64_t acc_of_result(const Item& item) const { return 2 * plan_.expanded + item.buffer * results_; }
  int64_t acc_of_output(const Item& item, int64_t block) const {
    const int64_t nth = item.nth_tile * last_->contraction().out_blocks + block;
    return 2 * (plan_.expanded + results_) + nth % plan_.outputs * results_;
  }

  TileProgram& p_;
  const FusedTiling tiling_;
  const FusedPlan plan_;
  const int64_t results_;  // vectors of a tile
  std::optional<LayerEmitter> first_, middle_, last_;
  std::array<std::vector<bool>, 2> padded_;  // by buffer of the hidden map: vectors that hold the pad value
};

}  // namespace tenon::compiler::accel
