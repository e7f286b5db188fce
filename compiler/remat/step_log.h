// A function of the language as the log of a step: what each of its kernels reads, makes and costs, in the form in
// which runtime/remat decides what to compute again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/ir/module.h"
#include "runtime/remat/log.h"

namespace tenon::compiler {

struct FunctionLog {
  runtime::remat::StepLog log;
  std::vector<uint32_t> bindings;  // by call of the log: the index of the binding in the function's body
  std::vector<bool> repeatable;    // by call: whether it may be executed again
  bool has_other_kernels = false;  // than native ones and operators that only give another shape
};

// What the log cannot see in the function.
struct LogOptions {
  // What so many bytes of a tensor take of the system; empty: so many.
  std::function<int64_t(int64_t bytes)> footprint = {};
  // The memory of its own that the native kernel of a binding takes while it is executed; nothing where it has no
  // native kernel. Empty: none take any.
  std::function<std::optional<int64_t>(const Binding&)> kernel_bytes = {};
};

// The log of one call of the function, whose kernels are operators, calls of functions with a composite or a target,
// and calls of loop functions. Its constants are the parameters, which the caller holds; the module's constants have no
// bytes here. Tuples, projections and casts without fresh dims are names of tensors and no calls. What else a binding
// may be (control flow, a call of any other function, an effect) is executed once: its results are kept, and what it
// reads is counted until the end, since it may hold it. A call costs the nanoseconds of a model: its
// multiply-accumulates, the bytes that it reads and writes, and what any call costs. An error where a tensor has a size
// without a bound.
Expected<FunctionLog> function_log(Context& context, const Module& module, const Function& function,
                                   const LogOptions& options = {});

}  // namespace tenon::compiler
