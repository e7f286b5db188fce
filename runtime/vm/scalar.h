// Scalar instructions: the elements of the reference kernels of the same names.
#pragma once

#include "runtime/executable/executable.h"
#include "runtime/vm/heap.h"

namespace tenon::runtime {

// `a` and `b` are scalars of `dtype`, for which the operation is defined. False: an integer is divided by 0.
bool compute_scalar(ScalarOp op, DType dtype, const Word& a, const Word& b, Word& result);

}  // namespace tenon::runtime
