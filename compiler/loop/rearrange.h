// Functions that only rearrange elements, such as those that pack constants: executed in a loop over memory, since the
// evaluator, which checks every step, would take seconds for the weights of a large layer.
#pragma once

#include <span>

#include "compiler/loop/loop.h"
#include "runtime/tensor.h"

namespace tenon::compiler::loop {

// The only result of the function for these parameters. A copy of one parameter, at indices that are sums of functions
// of single loop variables, takes nanoseconds an element; any other function is evaluated (evaluate.h).
Expected<runtime::Tensor> rearranged(TypeContext& context, const Function& function,
                                     std::span<const runtime::Tensor> params);

}  // namespace tenon::compiler::loop
