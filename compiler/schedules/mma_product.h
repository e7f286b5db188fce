// The template of products of i8 for GPUs with tensor cores: a warp multiplies tiles of 16 by 32 and 32 by 8 bytes by
// one instruction (mma.sync; NVIDIA, "Parallel Thread Execution ISA", section on matrix fragments for m16n8k32),
// exactly.
//
// A block has 4 by 8 threads, a warp, times its warps along z, which share the rows. The thread (x, y) of a warp holds
// the sums of row y of its 8 pairs of rows, and of column pair x of 4: a pair of rows are the two rows of a fragment
// that a thread holds. So all rows and columns of a thread are contiguous, and the digits of their indices are threads.
//
//   cache_read, pad, layout, at_load, ...    as in thread_product.h, with the terms innermost
//   tensorize                                two rows, two columns and 32 terms of a thread
#pragma once

#include "compiler/schedules/product.h"

namespace tenon::compiler::schedules {

// Whether the stage adds products of two i8, each converted to i32, and has enough rows, columns and terms for a tile.
bool has_byte_terms(TypeContext& context, loop::Schedule& schedule, const ProductStages& product);

// Applies the steps; stops at the first one that is refused. Requires has_byte_terms().
Status schedule_byte_product(TypeContext& context, loop::Schedule& schedule, const ProductStages& product,
                             const Machine& machine, const ChooseOption& choose);

}  // namespace tenon::compiler::schedules
