// Dot products of packed integers, by the processor's instructions or by their replacement.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "compiler/backends/llvm/target.h"

namespace tenon::compiler::native {

// sum + the dot product of the four bytes in each i32 of x and y. Values are scalars or vectors; x or y may be a scalar
// that is equal in all lanes.
llvm::Value* emit_byte_dot(llvm::IRBuilderBase& b, const Level& level, llvm::Value* sum, llvm::Value* x, llvm::Value* y,
                           bool x_signed, bool y_signed);
// The same for x of u8 and y of i8, where the sums of the first two products and of the last two saturate to i16.
llvm::Value* emit_byte_dot_saturating(llvm::IRBuilderBase& b, const Level& level, llvm::Value* sum, llvm::Value* x,
                                      llvm::Value* y);
// sum + the dot product of the two i16 in each i32 of x and y.
llvm::Value* emit_int16_dot(llvm::IRBuilderBase& b, const Level& level, llvm::Value* sum, llvm::Value* x,
                            llvm::Value* y);

}  // namespace tenon::compiler::native
