// Elementwise functions of one operand, and casts.
#include <cmath>
#include <limits>

#include "compiler/kernels/lowerings.h"
#include "runtime/dtype.h"

namespace tenon::compiler::kernels {
namespace {

Expr truncated(const Expr& x) {
  return select(below(x, 0), loop::unary(UnaryOp::kCeil, x), loop::unary(UnaryOp::kFloor, x));
}

// exp(x) / 2 for exponents beyond which exp(x) alone may overflow.
constexpr double kMaxExponent = 80;
Expr half_exponential(const Expr& x) {
  const Expr half = exponential(x * 0.5);
  return half * 0.5 * half;
}
// Above this x * x + 1 equals x * x in all types, and x * x may overflow.
constexpr double kLargeArgument = 1e9;

// A saturating conversion to an integer type, with NaN as 0.
Expr saturated(const Expr& x, DType to) {
  double lo = 0, end = 0;  // end: the power of two above the maximum, exact in every float type
  Expr smallest, largest;
  runtime::with_dtype<runtime::kIntegers>(to, [&]<class T>(T) {
    using Limits = std::numeric_limits<T>;
    lo = static_cast<double>(Limits::min()), end = std::ldexp(1.0, Limits::digits);
    smallest = loop::integer_literal(to, static_cast<int64_t>(Limits::min()));
    largest = loop::integer_literal(to, static_cast<int64_t>(Limits::max()));
  });
  return select(is_equal(x, x),
                select(below(x, lo), smallest, select(less_equal(like(x, end), x), largest, loop::convert(to, x))),
                loop::integer_literal(to, 0));
}

LoweredResults cast(const OperatorCall& op) {
  const DType from = op.arg(0).dtype, to = op.dtype();
  return op.expression([=, value = op.arg(0)](const Dims& at) {
    const Expr x = value.at(at);
    if (from == to) return x;
    if (to == DType::kBool) return is_not_equal(x, like(x, 0));
    return loop::is_float(from) && !loop::is_float(to) ? saturated(x, to) : loop::convert(to, x);
  });
}

LoweredResults sign(const OperatorCall& op) {
  return op.expression([value = op.arg(0)](const Dims& at) {
    const Expr x = value.at(at);
    const bool is_signed = runtime::kSignedNumericTypes.contains(x->dtype);
    const Expr zero = loop::is_float(x->dtype) ? select(is_equal(x, x), like(x, 0), x) : like(x, 0);
    return select(above(x, 0), like(x, 1), is_signed ? select(below(x, 0), like(x, -1), zero) : zero);
  });
}

LoweredResults abs(const OperatorCall& op) {
  return op.expression([value = op.arg(0)](const Dims& at) {
    const Expr x = value.at(at);
    return runtime::kSignedNumericTypes.contains(x->dtype) ? absolute(x) : x;
  });
}

LoweredResults bitwise_not(const OperatorCall& op) {
  return op.expression([value = op.arg(0)](const Dims& at) {
    const Expr x = value.at(at);
    const Expr zero = loop::integer_literal(x->dtype, 0), one = loop::integer_literal(x->dtype, 1);
    return loop::binary(BinaryOp::kBitXor, x, zero - one);
  });
}

template <UnaryOp unary>
constexpr Lower unary_function() {
  return elementwise([](const Expr& x) { return loop::unary(unary, x); });
}

}  // namespace

std::span<const Lowering> math_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {ops::kIdentity, elementwise([](const Expr& x) { return x; })},
      {ops::kStopGradient, elementwise([](const Expr& x) { return x; })},
      {ops::kCast, cast},
      {ops::kAbs, abs},
      {ops::kNegate, unary_function<UnaryOp::kNegate>()},
      {ops::kSign, sign},
      {ops::kReciprocal, elementwise([](const Expr& x) { return 1.0 / x; })},
      {ops::kExp, unary_function<UnaryOp::kExp>()},
      {ops::kExpm1, elementwise([](const Expr& x) { return expm1(x); })},
      {ops::kLog, unary_function<UnaryOp::kLog>()},
      {ops::kLog1p, elementwise([](const Expr& x) { return log1p(x); })},
      {ops::kSqrt, unary_function<UnaryOp::kSqrt>()},
      {ops::kRsqrt, elementwise([](const Expr& x) { return 1.0 / square_root(x); })},
      {ops::kErf, unary_function<UnaryOp::kErf>()},
      {ops::kSin, unary_function<UnaryOp::kSin>()},
      {ops::kCos, unary_function<UnaryOp::kCos>()},
      {ops::kTan,
       elementwise([](const Expr& x) { return loop::unary(UnaryOp::kSin, x) / loop::unary(UnaryOp::kCos, x); })},
      {ops::kAsin, elementwise([](const Expr& x) { return atan(x / square_root((1.0 - x) * (1.0 + x))); })},
      {ops::kAcos, elementwise([](const Expr& x) { return 2.0 * atan(square_root((1.0 - x) / (1.0 + x))); })},
      {ops::kAtan, unary_function<UnaryOp::kAtan>()},
      {ops::kSinh, elementwise([](const Expr& x) {
         const Expr y = half_exponential(absolute(x));
         return select(above(absolute(x), kMaxExponent), select(below(x, 0), -y, y), (expm1(x) - expm1(-x)) * 0.5);
       })},
      {ops::kCosh, elementwise([](const Expr& x) {
         return select(above(absolute(x), kMaxExponent), half_exponential(absolute(x)),
                       (exponential(x) + exponential(-x)) * 0.5);
       })},
      {ops::kAsinh, elementwise([](const Expr& x) {
         const Expr magnitude = absolute(x);
         const Expr small = log1p(magnitude + magnitude * magnitude / (1.0 + square_root(magnitude * magnitude + 1.0)));
         const Expr y = select(above(magnitude, kLargeArgument), logarithm(magnitude) + M_LN2, small);
         return select(below(x, 0), -y, y);
       })},
      {ops::kAcosh, elementwise([](const Expr& x) {
         const Expr above_1 = x - 1.0;
         return select(above(x, kLargeArgument), logarithm(x) + M_LN2,
                       log1p(above_1 + square_root(above_1) * square_root(x + 1.0)));
       })},
      {ops::kAtanh, elementwise([](const Expr& x) { return log1p(2.0 * x / (1.0 - x)) * 0.5; })},
      {ops::kFloor, unary_function<UnaryOp::kFloor>()},
      {ops::kCeil, unary_function<UnaryOp::kCeil>()},
      {ops::kRound, unary_function<UnaryOp::kRound>()},
      {ops::kTrunc, elementwise([](const Expr& x) { return truncated(x); })},
      {ops::kIsNan, elementwise([](const Expr& x) { return is_not_equal(x, x); })},
      {ops::kIsInf, elementwise([](const Expr& x) { return is_equal(absolute(x), like(x, HUGE_VAL)); })},
      {ops::kLogicalNot, elementwise([](const Expr& x) { return logical_not(x); })},
      {ops::kBitwiseNot, bitwise_not},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
