// The template of matrix products for GPUs: blocks of threads, each of which computes a tile of sums in its registers
// from panels of both operands in shared memory.
//
//   cache_read, pad, layout, at_load     the operands with whole panels; constants with their columns inside
//   pad, split, reorder                  a block of rows and columns for each block of threads, a tile for each thread
//   compute_at, store_at, layout         the sums of a block, in registers that the threads index
//   cache_read, compute_at, store_at     the panels of a block, in shared memory, the terms outermost
//
// Then loops are bound to blocks and threads.
#pragma once

#include "compiler/schedules/product.h"

namespace tenon::compiler::schedules {

constexpr int64_t kBlockSide = 16;  // threads of a block along rows, and along columns

// Applies the steps; stops at the first one that is refused. A product with fewer rows or columns than a block has
// threads along them keeps its plain loops, and its constants are laid out for the threads of neighbouring columns.
Status schedule_product_of_threads(TypeContext& context, loop::Schedule& schedule, const ProductStages& product,
                                   const Machine& machine, const ChooseOption& choose);

}  // namespace tenon::compiler::schedules
