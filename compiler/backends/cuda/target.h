// GPUs as a target: operators whose loop functions can be bound to blocks and threads.
//
// Semantics: a region is one loop function, whose outermost nests are launches (compiler/loop/schedule/bind.h). Its
// results are those of the CPU's kernels. Compiled to PTX, it runs on the GPU, and its parameters and results are
// copied. Emulated, the bound functions are compiled for the CPU with the other native kernels of the executable, so
// they need no GPU and no copies.
#pragma once

#include "compiler/partition/target_record.h"

namespace tenon::compiler::cuda {

// The target "cuda". Sizes may be unknown where operands determine them; scalars, and operators that only change a
// shape, stay on the host.
Target make_target(const TargetOptions& options = {});
Target make_emulated_target(const TargetOptions& options = {});
std::vector<TargetRecord> records();

}  // namespace tenon::compiler::cuda
