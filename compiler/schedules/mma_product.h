// The template of products for GPUs with tensor cores: a warp multiplies tiles of 16 rows and 8 columns by one
// instruction (mma.sync; NVIDIA, "Parallel Thread Execution ISA", sections on matrix fragments). Products of i8 are
// exact; those of f16, bf16 and f32 are inexact, so a user must allow them (Machine::inexact).
//
// A block has 4 by 8 threads, a warp, times its warps along z, which share the rows. The thread (x, y) of a warp holds
// the sums of rows 2y and 2y + 1 of a tile, which the instruction takes for rows y and y + 8, and of its columns 2x and
// 2x + 1: the digits of rows and columns are threads.
//
//   cache_read, pad, layout, at_load, ...    as in thread_product.h, with the terms innermost
//   pipeline                                 the panels of the next iteration are copied asynchronously (cp.async)
//   tensorize                                two rows, two columns and two halves of the terms of a thread
//
// A panel in shared memory has groups of 32 bytes of terms around the lanes of a tile, as cp.async reads a sector of 32
// bytes once only where its two words of 16 bytes stay together. ldmatrix reads one word of 8 lanes, whose stride is 32
// bytes: half of the banks. A quarter of a warp copies 64 contiguous bytes of two lanes, by padding to all banks.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/schedules/product.h"

namespace tenon::compiler::schedules {

struct MatrixProduct {
  std::string_view instruction;  // compiler/loop/instructions.h
  int64_t word = 0;              // terms in 16 bytes: half of those of the instruction
  bool inexact = false;
};

// The instruction that multiplies what the stage adds, if the machine's user allows it, and the stage has enough rows,
// columns and terms for a tile.
std::optional<MatrixProduct> matrix_product(TypeContext& context, loop::Schedule& schedule,
                                            const ProductStages& product, const Machine& machine);

// Applies the steps; stops at the first one that is refused.
Status schedule_matrix_product(TypeContext& context, loop::Schedule& schedule, const ProductStages& product,
                               const MatrixProduct& instruction, const Machine& machine, const ChooseOption& choose);

}  // namespace tenon::compiler::schedules
