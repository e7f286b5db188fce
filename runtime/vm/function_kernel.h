// C++ functions over tensors, as reference kernels are, with the interface of kernels (runtime/native/kernel.h).
#pragma once

#include <vector>

#include "runtime/executable/executable.h"
#include "runtime/native/operator_kernel.h"
#include "runtime/vm/session.h"

namespace tenon::runtime {

// The function as the kernel of this call, which outlives it: with its attributes, and the values of those that are
// computed. Results that are views of inputs stay views.
OperatorKernel make_kernel(CpuKernel function, const CallKernel& call);

}  // namespace tenon::runtime
