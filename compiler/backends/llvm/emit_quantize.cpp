#include "compiler/backends/llvm/emit_quantize.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/loop/expr.h"

namespace tenon::compiler::native {
namespace {

using llvm::Value;
using loop::BinaryOp;
using loop::Expr;
using loop::UnaryOp;
using runtime::DType;

constexpr float kUnbounded = std::numeric_limits<float>::infinity();
constexpr float kLargestScale = 0x1p100F;  // far from overflow, and its inverse from underflow
constexpr int kNeighbors = 4;              // floats on each side of a half integer's, where quotients may differ
// A float of this size has a unit of 1 in its last digit, so that adding it rounds to an integer, halves to even, whose
// bits are the low ones of the sum.
constexpr double kRounding = 0x1.8p23;

const loop::Binary* as_binary(const Expr& expr, BinaryOp op) {
  const auto* binary = std::get_if<loop::Binary>(&expr->form);
  return binary && binary->op == op ? binary : nullptr;
}
// An integer as a literal of f32, or converted to it.
std::optional<int> as_integer(const Expr& expr) {
  if (const auto* cast = std::get_if<loop::Convert>(&expr->form)) {
    const auto* literal = std::get_if<loop::Literal>(&cast->value->form);
    if (!literal || loop::is_float(cast->value->dtype) || std::abs(literal->integer) > UINT8_MAX) return std::nullopt;
    return static_cast<int>(literal->integer);
  }
  const auto* literal = std::get_if<loop::Literal>(&expr->form);
  if (!literal || !(std::abs(literal->real) <= UINT8_MAX) || literal->real != std::floor(literal->real))
    return std::nullopt;
  return static_cast<int>(literal->real);
}

}  // namespace

std::optional<QuotientFactors> quotient_factors(float divisor, int lowest, int highest) {
  if (!(divisor >= 1 / kLargestScale && divisor <= kLargestScale)) return std::nullopt;
  // Not below the inverse's leading digits: both products of an infinity are infinities of its sign.
  const double inverse = 1 / static_cast<double>(divisor);
  auto high = static_cast<float>(inverse);
  if (static_cast<double>(high) > inverse) high = std::nextafter(high, 0.0F);
  const QuotientFactors factors{high, static_cast<float>(inverse - static_cast<double>(high))};
  const auto clamped = [&](float x) {
    return std::clamp(std::nearbyint(x), static_cast<float>(lowest), static_cast<float>(highest));
  };
  const auto by_division = [&](float x) { return clamped(x / divisor); };
  const auto by_factors = [&](float x) {
    return clamped(factors.low == 0 ? x * high : std::fma(x, high, x * factors.low));
  };
  for (int k = lowest; k < highest; ++k) {
    auto x = static_cast<float>((k + 0.5) * static_cast<double>(divisor));
    for (int i = 0; i < kNeighbors; ++i) x = std::nextafter(x, -kUnbounded);
    if (by_division(x) != static_cast<float>(k)) return std::nullopt;
    for (int i = -kNeighbors; i < kNeighbors; ++i) {
      if (by_division(x) != by_factors(x)) return std::nullopt;
      x = std::nextafter(x, kUnbounded);
    }
    if (by_division(x) != static_cast<float>(k + 1) || by_factors(x) != static_cast<float>(k + 1)) return std::nullopt;
  }
  return factors;
}

std::optional<QuantizedByte> match_quantization(const loop::ExprNode& node) {
  const auto* convert = std::get_if<loop::Convert>(&node.form);
  if (!convert || (node.dtype != DType::kI8 && node.dtype != DType::kU8) || convert->value->dtype != DType::kF32)
    return std::nullopt;
  const auto* select = std::get_if<loop::Select>(&convert->value->form);
  const auto* is_number = select ? as_binary(select->condition, BinaryOp::kEqual) : nullptr;
  const auto* least = is_number ? as_binary(select->then, BinaryOp::kMin) : nullptr;
  const auto* most = least ? as_binary(least->left, BinaryOp::kMax) : nullptr;
  if (!most || as_integer(select->otherwise) != 0) return std::nullopt;
  const Expr& q = most->left;
  if (!loop::equal(is_number->left, q) || !loop::equal(is_number->right, q)) return std::nullopt;
  const auto* sum = as_binary(q, BinaryOp::kAdd);
  const auto* round = sum ? std::get_if<loop::Unary>(&sum->left->form) : nullptr;
  const auto* quotient = round && round->op == UnaryOp::kRound ? as_binary(round->value, BinaryOp::kDivide) : nullptr;
  const auto* scale = quotient ? std::get_if<loop::Literal>(&quotient->right->form) : nullptr;
  if (!scale) return std::nullopt;
  const auto zero = as_integer(sum->right), lowest = as_integer(most->right), highest = as_integer(least->right);
  if (!zero || !lowest || !highest || *lowest > *highest) return std::nullopt;
  const int first = node.dtype == DType::kI8 ? INT8_MIN : 0;
  if (*lowest < first || *highest > first + UINT8_MAX) return std::nullopt;
  return QuantizedByte{quotient->left, static_cast<float>(scale->real), *zero, *lowest, *highest};
}

// Any quotient with the value of the division, once it is rounded and clamped.
Value* QuantizationEmitter::quotient(Value* x, float divisor, int lowest, int highest) {
  llvm::Type* type = x->getType();
  const auto real = [&](float value) { return llvm::ConstantFP::get(type, static_cast<double>(value)); };
  if (!level_.fma) return b_.CreateFDiv(x, real(divisor));
  const auto [found, is_new] = factors_.try_emplace({divisor, lowest, highest});
  if (is_new) found->second = quotient_factors(divisor, lowest, highest);
  if (!found->second) return b_.CreateFDiv(x, real(divisor));
  const auto [high, low] = *found->second;
  if (low == 0) return b_.CreateFMul(x, real(high));
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, real(high), b_.CreateFMul(x, real(low))});
}

Value* QuantizationEmitter::emit(const QuantizedByte& byte, Value* x) {
  llvm::Type* type = x->getType();
  const int lowest = byte.lowest - byte.zero, highest = byte.highest - byte.zero;
  Value* const q = quotient(x, byte.scale, lowest, highest);
  // Clamped before it is rounded, which gives the same integers; NaN becomes the lowest.
  Value *least = llvm::ConstantFP::get(type, lowest), *most = llvm::ConstantFP::get(type, highest);
  Value* inside = b_.CreateSelect(b_.CreateFCmpOGT(q, least), q, least);
  inside = b_.CreateSelect(b_.CreateFCmpOLT(inside, most), inside, most);
  llvm::Type *bits = type->getWithNewType(b_.getInt32Ty()), *bytes = type->getWithNewType(b_.getInt8Ty());
  Value* result = b_.CreateBitCast(b_.CreateFAdd(inside, llvm::ConstantFP::get(type, kRounding)), bits);
  result = b_.CreateAdd(b_.CreateTrunc(result, bytes), llvm::ConstantInt::getSigned(bytes, byte.zero));
  if (byte.lowest == 0) return result;
  return b_.CreateSelect(b_.CreateFCmpUNO(x, x), llvm::Constant::getNullValue(bytes), result);
}

}  // namespace tenon::compiler::native
