// The template of products for GPUs with tensor cores: a warp multiplies tiles of 16 rows and 8 columns by one
// instruction (mma.sync; NVIDIA, "Parallel Thread Execution ISA", sections on matrix fragments). Products of bytes are
// exact; those of f16, bf16 and f32 are inexact, so a user must allow them (Machine::inexact).
//
// A block has 4 by 8 threads, a warp, times its warps along z, which share the rows. The thread (x, y) of a warp holds
// the sums of rows 2y and 2y + 1 of a tile, which the instruction takes for rows y and y + 8, and of its columns 2x and
// 2x + 1: the digits of rows and columns are threads.
//
//   cache_read, pad, layout, at_load, ...    as in thread_product.h, with the terms innermost
//   swizzle                                  the order of a lane's words, for banks
//   pipeline                                 the panels of the next two iterations are copied asynchronously (cp.async)
//   tensorize                                two rows, two columns and two halves of the terms of a thread
//
// A lane of a panel has the terms of two tiles, 64 bytes, in shared memory, whose words of 16 bytes are swizzled: those
// that ldmatrix reads, one of each of 8 lanes, and those that a quarter of a warp copies, all of two lanes, are in all
// banks. cp.async reads a sector of 32 bytes once only where its two words stay in one, as they do.
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

// The instruction for factors and sums of these types in memory, if the machine has one and its user allows it.
std::optional<MatrixProduct> matrix_instruction(runtime::DType left, runtime::DType right, runtime::DType sums,
                                                const Machine& machine);

// The instruction that multiplies what the stage adds, if the machine's user allows it, and the stage has enough rows,
// columns and terms for a tile.
std::optional<MatrixProduct> matrix_product(TypeContext& context, loop::Schedule& schedule,
                                            const ProductStages& product, const Machine& machine);

// Applies the steps; stops at the first one that is refused.
Status schedule_matrix_product(TypeContext& context, loop::Schedule& schedule, const ProductStages& product,
                               const MatrixProduct& instruction, const Machine& machine, const ChooseOption& choose);

}  // namespace tenon::compiler::schedules
