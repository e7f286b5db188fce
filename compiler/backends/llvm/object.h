// Object files of LLVM modules. Internal to this folder: LLVM's headers are included here.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "compiler/backends/llvm/target.h"

namespace tenon::compiler::native {

// Cached by each thread: initializing a processor's instruction tables takes a millisecond.
llvm::TargetMachine& machine_for(const Target& target, const Level& level);

// SROA turns small buffers into registers, the other passes clean up after it; loops need no further optimization.
llvm::SmallVector<char, 0> make_object(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tenon::compiler::native
