// sin, cos and pow of f32, computed in f64, whose result is rounded once.
//
// The values before the last rounding are within 2^-32 of the exact ones, so the largest error is 0.51 units of the
// last place, for all arguments. Special values are C's: sin and cos of an infinity are NaN, pow(x, 0) and pow(1, y)
// are 1.
#pragma once

#include "compiler/backends/llvm/math_call.h"

namespace tenon::compiler::native {

// Bodies for call_own_function(), of scalars or vectors of f32.
llvm::Value* sine(llvm::IRBuilder<>& b, const Values& params);
llvm::Value* cosine(llvm::IRBuilder<>& b, const Values& params);
llvm::Value* power(llvm::IRBuilder<>& b, const Values& params);

}  // namespace tenon::compiler::native
