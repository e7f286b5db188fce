// Launches of several nests: nests that follow one another, and whose iterations of outer loops use only what the same
// iteration computed, become one nest, as the rows of a softmax.
#pragma once

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

struct MergeOptions {
  int64_t threads = 1024;          // of a block: an iteration of the merged loops has at most as many parallel points
  int64_t buffer_bytes = 8 << 10;  // of a buffer that only the merged loops use, and that moves into them
  // A block computes several iterations of the innermost merged loop, up to that many points of a stage, while so many
  // blocks remain: then stages with few points, as the sum of partial sums, have threads of several iterations.
  int64_t points = 1024, blocks = 1024;
  int64_t iterations = 1024;  // of a block, at most
};

// The function with as few outermost nests as these rules allow, for GPUs: each becomes a launch. Loops that have a
// kind already, and sizes that are not constant inside of the merged loops, keep nests separate. The results are the
// same.
Function merged(TypeContext& context, Function function, const MergeOptions& options = {});

}  // namespace tenon::compiler::loop
