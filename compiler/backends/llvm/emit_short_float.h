// Conversions of f16 and bf16, whose values are their 16 bits, to and from f32.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "compiler/machine/machine.h"
#include "runtime/dtype.h"

namespace tenon::compiler::native {

// Exact. `bits` is an i16 or a vector of them, the result a float or a vector of floats.
llvm::Value* widen_short_float(llvm::IRBuilderBase& b, const Machine& level, runtime::DType from, llvm::Value* bits);
// Rounds to the nearest, halves to even; beyond the range to infinity. A NaN remains a NaN.
llvm::Value* narrow_to_short_float(llvm::IRBuilderBase& b, const Machine& level, runtime::DType to, llvm::Value* value);

}  // namespace tenon::compiler::native
