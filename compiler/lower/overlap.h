// Accelerator programs beside the processor: each is started as soon as its inputs are there, and what does not depend
// on its results runs before they are waited for, as far as the same basic block has native kernels of this kind.
#pragma once

#include "runtime/executable/executable.h"

namespace tenon::compiler {

// Adds a StartProgram for each CallProgram that native kernels can run beside, and moves the call and what depends on
// it after these; otherwise the order stays. The code has no Kill instructions yet: values that a program reads live
// until its call, where they may die.
void overlap_programs(runtime::Function& function);

}  // namespace tenon::compiler
