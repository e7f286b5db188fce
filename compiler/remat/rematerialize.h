// A function of the language in the order of a plan, in which kernels may be called again.
#pragma once

#include <cstdint>
#include <span>

#include "compiler/ir/module.h"
#include "compiler/remat/step_log.h"

namespace tenon::compiler {

// The function with its bindings in the order of the log's calls `order`, where a call may occur more than once: each
// reader has the value of the last call before it. Every call of the log occurs, each after what it reads; calls that
// may not be executed again (function_log) occur once, in the order of the log. The results are the same bits, since a
// call that is repeated is the same kernel on the same operands.
Function rematerialized(const Function& function, const FunctionLog& log, std::span<const uint32_t> order);

}  // namespace tenon::compiler
