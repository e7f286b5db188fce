// Quantization of f32 to bytes without its division: clamp(round(x / scale) + zero point).
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <map>
#include <optional>
#include <tuple>

#include "compiler/backends/llvm/target.h"
#include "compiler/loop/loop.h"

namespace tenon::compiler::native {

// The quotient of x by a constant as x * high + x * low, the last product fused with the addition.
struct QuotientFactors {
  float high = 0, low = 0;
};
// Factors whose quotient has, rounded and clamped to [lowest, highest], the value of the division for every x,
// infinities included; NaN stays NaN. nullopt if there are none. Both functions of x are monotone, so that it suffices
// to compare them beside the half integers.
std::optional<QuotientFactors> quotient_factors(float divisor, int lowest, int highest);

// The byte min(max(round(value / scale) + zero, lowest), highest), which is 0 where the value is NaN.
struct QuantizedByte {
  loop::Expr value;
  float scale = 1;
  int zero = 0, lowest = 0, highest = 0;
};
std::optional<QuantizedByte> match_quantization(const loop::ExprNode& node);

class QuantizationEmitter {
 public:
  QuantizationEmitter(llvm::IRBuilderBase& b, const Level& level) : b_(b), level_(level) {}

  // `x`: the byte's value, a float or a vector of floats.
  llvm::Value* emit(const QuantizedByte& byte, llvm::Value* x);

 private:
  llvm::Value* quotient(llvm::Value* x, float divisor, int lowest, int highest);

  llvm::IRBuilderBase& b_;
  const Level& level_;
  std::map<std::tuple<float, int, int>, std::optional<QuotientFactors>> factors_;  // those found before
};

}  // namespace tenon::compiler::native
