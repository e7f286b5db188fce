// Tensors of f16 and bf16 in kernels. As in the reference kernels, an operator computes in f32, and each of its results
// is rounded once; so lowerings see f32 alone.
#pragma once

#include "compiler/kernels/emitter.h"

namespace tenon::compiler::kernels {

// The tensor in f32 where it is f16 or bf16, with itself as `stored_as`; any other tensor as it is.
LazyTensor widened(Emitter& emit, const LazyTensor& value);
// The tensor, rounded to the dtype where that is f16 or bf16 and the tensor f32; else as it is.
LazyTensor rounded(Emitter& emit, const LazyTensor& value, DType dtype);
// What a matrix instruction multiplies: of a tensor that was widened, the one in memory, where the machine is a GPU.
const LazyTensor& matrix_operand(const Emitter& emit, const LazyTensor& value);

}  // namespace tenon::compiler::kernels
