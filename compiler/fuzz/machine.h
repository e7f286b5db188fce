// Modules compiled and run by the virtual machine. With the reference kernels and the evaluator of loop functions the
// results are the interpreter's, bit by bit; with native kernels floats are rounded otherwise.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/interpreter.h"
#include "runtime/batch/order.h"
#include "runtime/profile/profile.h"

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

// Runs instances of @main together, where the calls of the module's units are batches, and one after another, both with
// the reference kernels or with native ones: how their results differ, or their errors. Adds the calls and the batches
// of them to `counts`.
std::optional<std::string> together_differs(Context& context, const Module& module, const std::vector<Symbol>& units,
                                            std::span<const std::vector<RunValue>> instances,
                                            const Libraries& libraries, const Limits& limits, NativeCode native,
                                            runtime::BatchPolicy policy, runtime::BatchCounts& counts);

}  // namespace tenon::compiler::fuzz
