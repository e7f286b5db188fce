// The template of matrix products and convolutions: a list of checked steps that turns a plain sum of products, and the
// stage that computes results from the sums, into register tiles for a machine.
//
//   cache_read, pad, split, reorder, layout, at_load    the panels of the operand whose columns are lanes, or of
//                                                       the one whose rows are a tile's
//   pad, reorder, split                                 blocks of rows and columns, with smaller ones for the tails
//   clone, compute_at, store_at                         the sums of each block, in registers
//   reorder, split_init                                 the micro-kernel: rows unrolled, columns a vector
//   partition                                           whole blocks of columns, which need no condition
//   cache_read, layout, align_storage, split, reorder   tiles that are transposed before they are stored
//
// A user's own steps replace it (user_schedule.h).
#pragma once

#include <optional>

#include "compiler/loop/schedule/schedule.h"
#include "compiler/schedules/option.h"
#include "compiler/schedules/register_tile.h"

namespace tenon::compiler::schedules {

// The tiles and the order of their loops, where another template has chosen them: the operands of a convolution are
// copied for its tiles.
struct TileOrder {
  TileShape tile;
  bool rows_outer = false;  // blocks of columns are inside of those of rows
  size_t lines = 0;         // the last axes of the batch, whose loops are inside of the outer blocks
  bool transposed = false;  // rows, not columns, are adjacent in the results: tiles of at most 16 rows are transposed
  bool rolled = false;      // no loop over terms is unrolled
};

// Axes of a stage of sums.
struct MatrixAxes {
  Symbol rows{}, columns{};
};

// Two stages of a function. `sums` adds products into a buffer, whose axes are those of a batch, and rows and columns:
// the last two, unless `matrix` names them. `results`, in loops over the same axes of which the last two are those of
// rows and columns, computes results from the sums.
struct ProductStages {
  Symbol sums{}, results{};
  std::optional<Symbol> panels = {};      // the buffer, read by `sums`, that is packed into panels of columns
  std::optional<Symbol> row_panels = {};  // the one that is packed into panels of a tile's rows
  std::optional<TileOrder> order = {};
  std::optional<MatrixAxes> matrix = {};
};

// Applies the steps; stops at the first one that is refused.
Status schedule_product(TypeContext& context, loop::Schedule& schedule, const ProductStages& product,
                        const Machine& machine, const ChooseOption& choose);

}  // namespace tenon::compiler::schedules
