// Elementary functions of float scalars and vectors.
//
// exp, log, tanh, erf and atan of f32 consist of additions, multiplications and divisions only, so their results are
// equal bit for bit on every processor. Largest errors, in units of the last place, over all f32
// (tests/compiler/backends/llvm measures them): exp 1.2, log 0.9, tanh 6, erf 2, atan 3; exact at infinities, zeros and
// NaN, with gradual underflow. So are sin, cos and pow of f32, whose error is 0.51 (math_wide.h), and the exact fmod of
// f32 and f64 (math_remainder.h). All other functions of f64 call the C library for each element.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "compiler/loop/loop.h"

namespace tenon::compiler::native {

// kExp, kLog, kTanh, kErf, kSin, kCos, kAtan.
llvm::Value* emit_function(llvm::IRBuilderBase& b, llvm::Module& module, loop::UnaryOp op, llvm::Value* x);
// kPower of floats and integers, and kRemainder of floats.
llvm::Value* emit_function(llvm::IRBuilderBase& b, llvm::Module& module, loop::BinaryOp op, llvm::Value* left,
                           llvm::Value* right);

}  // namespace tenon::compiler::native
