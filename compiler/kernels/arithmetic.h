// Short names for scalar expressions, so that lowerings read like the formulas of the operators.
#pragma once

#include <cmath>

#include "compiler/loop/expr.h"

namespace tenon::compiler::kernels {

using loop::BinaryOp;
using loop::Expr;
using loop::UnaryOp;
using runtime::DType;

// A constant of the type of an expression, rounded to that type.
inline Expr like(const Expr& x, double value) {
  return loop::literal(x->dtype, x->dtype == DType::kF32 ? static_cast<double>(static_cast<float>(value)) : value);
}

inline Expr operator+(Expr a, Expr b) { return loop::binary(BinaryOp::kAdd, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return loop::binary(BinaryOp::kSubtract, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return loop::binary(BinaryOp::kMultiply, std::move(a), std::move(b)); }
inline Expr operator/(Expr a, Expr b) { return loop::binary(BinaryOp::kDivide, std::move(a), std::move(b)); }
inline Expr operator+(const Expr& a, double b) { return a + like(a, b); }
inline Expr operator-(const Expr& a, double b) { return a - like(a, b); }
inline Expr operator*(const Expr& a, double b) { return a * like(a, b); }
inline Expr operator/(const Expr& a, double b) { return a / like(a, b); }
inline Expr operator+(double a, const Expr& b) { return like(b, a) + b; }
inline Expr operator-(double a, const Expr& b) { return like(b, a) - b; }
inline Expr operator*(double a, const Expr& b) { return like(b, a) * b; }
inline Expr operator/(double a, const Expr& b) { return like(b, a) / b; }
inline Expr operator-(Expr x) { return loop::unary(UnaryOp::kNegate, std::move(x)); }

inline Expr less(Expr a, Expr b) { return loop::binary(BinaryOp::kLess, std::move(a), std::move(b)); }
inline Expr less_equal(Expr a, Expr b) { return loop::binary(BinaryOp::kLessEqual, std::move(a), std::move(b)); }
inline Expr is_equal(Expr a, Expr b) { return loop::binary(BinaryOp::kEqual, std::move(a), std::move(b)); }
inline Expr logical_and(Expr a, Expr b) { return loop::binary(BinaryOp::kAnd, std::move(a), std::move(b)); }
inline Expr logical_or(Expr a, Expr b) { return loop::binary(BinaryOp::kOr, std::move(a), std::move(b)); }
inline Expr logical_not(Expr a) { return loop::unary(UnaryOp::kNot, std::move(a)); }
inline Expr is_not_equal(Expr a, Expr b) { return logical_not(is_equal(std::move(a), std::move(b))); }
using loop::select;
inline Expr below(const Expr& a, double b) { return less(a, like(a, b)); }
inline Expr above(const Expr& a, double b) { return less(like(a, b), a); }
// The semantics of std::max and std::min: the first operand is the result where either one is NaN.
inline Expr maximum(const Expr& a, const Expr& b) { return select(less(a, b), b, a); }
inline Expr minimum(const Expr& a, const Expr& b) { return select(less(b, a), b, a); }

inline Expr absolute(Expr x) { return loop::unary(UnaryOp::kAbs, std::move(x)); }
inline Expr square_root(Expr x) { return loop::unary(UnaryOp::kSqrt, std::move(x)); }
inline Expr exponential(Expr x) { return loop::unary(UnaryOp::kExp, std::move(x)); }
inline Expr logarithm(Expr x) { return loop::unary(UnaryOp::kLog, std::move(x)); }
inline Expr power(Expr a, Expr b) { return loop::binary(BinaryOp::kPower, std::move(a), std::move(b)); }
inline Expr sigmoid(const Expr& x) { return 1.0 / (1.0 + exponential(-x)); }
inline Expr tanh(Expr x) { return loop::unary(UnaryOp::kTanh, std::move(x)); }
inline Expr atan(Expr x) { return loop::unary(UnaryOp::kAtan, std::move(x)); }
// exp(x) - 1 and log(1 + x), exact near 0: the error of the function cancels with that of its argument (Kahan; Higham,
// "Accuracy and Stability of Numerical Algorithms", 1.14.1).
inline Expr expm1(const Expr& x) {
  const Expr u = exponential(x), v = u - 1.0;
  return select(
      is_equal(u, like(x, 1)), x,
      select(logical_or(is_equal(v, like(x, -1)), is_equal(u, like(x, HUGE_VAL))), v, v * (x / logarithm(u))));
}
inline Expr log1p(const Expr& x) {
  const Expr u = 1.0 + x;
  return select(is_equal(u, like(x, 1)), x, select(is_equal(u, like(x, HUGE_VAL)), u, logarithm(u) * (x / (u - 1.0))));
}

}  // namespace tenon::compiler::kernels
