// The default binding of a function's loops to a GPU, for functions that are scheduled for a processor or not at all.
#pragma once

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

struct BindOptions {
  int64_t threads = 256;            // of a block, where a template has not chosen the vectors' lengths
  int64_t shared_bytes = 48 << 10;  // of a block
};

// Each outermost nest becomes one launch, with barriers where its phases need them:
// - a nest that steps have bound stays as it is;
// - the loops with independent iterations of a nest of one stage, and the outermost ones of a nest without vectors, are
//   fused and split into blocks of threads;
// - of a nest of several stages, as a template makes it for registers and vectors, the outermost loops with independent
//   iterations become blocks, the vectors' lanes become threads, a block's buffers shared memory, and those that all
//   threads index by their lanes stay in registers;
// - any other nest is executed by one thread.
// The results are those of the function. Errors: calls of libraries, and buffers of a size that is known at run time
// only inside a nest, which no launch supports.
Expected<Function> bound(TypeContext& context, Function function, const BindOptions& options = {});

}  // namespace tenon::compiler::loop
