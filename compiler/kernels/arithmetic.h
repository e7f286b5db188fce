// Short names for scalar expressions, as the formulas of operators are written.
#pragma once

#include "compiler/loop/expr.h"

namespace tenon::compiler::kernels {

using loop::BinaryOp;
using loop::Expr;
using loop::UnaryOp;
using runtime::DType;

// A number in the type of an expression, rounded into it.
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
inline Expr same(Expr a, Expr b) { return loop::binary(BinaryOp::kEqual, std::move(a), std::move(b)); }
inline Expr both(Expr a, Expr b) { return loop::binary(BinaryOp::kAnd, std::move(a), std::move(b)); }
inline Expr either(Expr a, Expr b) { return loop::binary(BinaryOp::kOr, std::move(a), std::move(b)); }
inline Expr negated(Expr a) { return loop::unary(UnaryOp::kNot, std::move(a)); }
inline Expr differs(Expr a, Expr b) { return negated(same(std::move(a), std::move(b))); }
inline Expr choose(Expr condition, Expr a, Expr b) {
  return loop::select(std::move(condition), std::move(a), std::move(b));
}
inline Expr below(const Expr& a, double b) { return less(a, like(a, b)); }
inline Expr above(const Expr& a, double b) { return less(like(a, b), a); }
// As std::max and std::min have them: what is no number stays where it stands first.
inline Expr larger(const Expr& a, const Expr& b) { return choose(less(a, b), b, a); }
inline Expr smaller(const Expr& a, const Expr& b) { return choose(less(b, a), b, a); }

inline Expr absolute(Expr x) { return loop::unary(UnaryOp::kAbs, std::move(x)); }
inline Expr root(Expr x) { return loop::unary(UnaryOp::kSqrt, std::move(x)); }
inline Expr exponential(Expr x) { return loop::unary(UnaryOp::kExp, std::move(x)); }
inline Expr logarithm(Expr x) { return loop::unary(UnaryOp::kLog, std::move(x)); }
inline Expr power(Expr a, Expr b) { return loop::binary(BinaryOp::kPower, std::move(a), std::move(b)); }
inline Expr sigmoid(const Expr& x) { return 1.0 / (1.0 + exponential(-x)); }
inline Expr hyperbolic_tangent(Expr x) { return loop::unary(UnaryOp::kTanh, std::move(x)); }
inline Expr arc_tangent(Expr x) { return loop::unary(UnaryOp::kAtan, std::move(x)); }
// exp(x) - 1 and log(1 + x), exact near 0: the error of the function cancels with that of its argument (Kahan; Higham,
// "Accuracy and Stability of Numerical Algorithms", 1.14.1).
inline Expr exponential_less_1(const Expr& x) {
  const Expr u = exponential(x), v = u - 1.0;
  return choose(same(u, like(x, 1)), x,
                choose(either(same(v, like(x, -1)), same(u, like(x, HUGE_VAL))), v, v * (x / logarithm(u))));
}
inline Expr logarithm_of_1_and(const Expr& x) {
  const Expr u = 1.0 + x;
  return choose(same(u, like(x, 1)), x, choose(same(u, like(x, HUGE_VAL)), u, logarithm(u) * (x / (u - 1.0))));
}

}  // namespace tenon::compiler::kernels
