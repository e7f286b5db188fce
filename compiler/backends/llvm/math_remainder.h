// The remainder of a division of floats, with the sign of the dividend (fmod). It is exact.
#pragma once

#include "compiler/backends/llvm/math_call.h"

namespace tenon::compiler::native {

// A body for call_own_function(), of scalars or vectors of f32 or f64: a long division of the mantissas, bit by bit.
// Its number of steps is the largest difference of exponents of a lane.
llvm::Value* remainder(llvm::IRBuilder<>& b, const Values& params);

}  // namespace tenon::compiler::native
