// Rows in warps: nests that compute and reduce the rows of a tensor, as softmax and layer normalizations, for GPUs. A
// row is computed by 16 or 32 neighbouring threads, which keep its elements in registers and exchange partial sums.
#pragma once

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

struct WarpRowOptions {
  int64_t threads = 256;   // of a block, at most
  int64_t blocks = 264;    // at least so many, before a block has several rows
  int64_t registers = 96;  // of a thread, for elements of rows
};

// Binds the nests of a function in which rows are reduced by partial sums, 16 or 64 of each row (rfactor), that a stage
// adds up:
// - the stage becomes a tree of stages, each of which adds the upper half of the partial sums to the lower one;
// - nests become one for each row, as far as merged() can;
// - threads have the elements of a row that have their index modulo 16 or 32, and registers for those of local buffers.
// Other nests stay as they are. Where a nest cannot be bound so, or has more elements than registers, the function is
// returned unchanged. The results are the same but for the order of sums.
Function with_warp_rows(TypeContext& context, Function function, const WarpRowOptions& options = {});

}  // namespace tenon::compiler::loop
