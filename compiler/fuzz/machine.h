// Modules compiled and run by the virtual machine. With the reference kernels and the evaluator of loop functions the
// results are the interpreter's, bit by bit; with native kernels floats are rounded otherwise.
#pragma once

#include "compiler/ir/interpreter.h"

namespace tenon::compiler::fuzz {

struct CompiledRun {
  Expected<RunValue> result;
  bool compiled = false;  // else the result is the compiler's error
  bool limited = false;   // the run was stopped by a limit
  uint64_t peak = 0;      // under a budget: the most bytes of tensors
};

// Lowers @main with everything that it uses, saves and loads the executable, and runs it with at most `limits.steps`
// instructions.
enum class NativeCode : uint8_t {
  kNone,
  kFunctions,  // the functions are compiled ahead of time for this machine
  kKernels,    // native kernels, where the module has operators or groups that have one
};
CompiledRun run_compiled(Context& context, const Module& module, std::span<const RunValue> inputs,
                         const Libraries& libraries, const Limits& limits, NativeCode native,
                         uint64_t budget = 0);  // SessionOptions::budget

}  // namespace tenon::compiler::fuzz
