// Functions of one element, and casts.
#include <cmath>
#include <limits>

#include "compiler/kernels/lowerings.h"
#include "runtime/reference/dtypes.h"

namespace tenon::compiler::kernels {
namespace {

// f(x) for each element; F captures nothing.
template <class F>
constexpr Lower each(F) {
  return [](const Operation& op) -> Expected<std::vector<Value>> {
    return op.expression([value = op.arg(0)](const Dims& at) { return F{}(value.at(at)); });
  };
}

Expr truncated(const Expr& x) {
  return choose(below(x, 0), loop::unary(UnaryOp::kCeil, x), loop::unary(UnaryOp::kFloor, x));
}

// exp(x) / 2 where exp(x) alone may be too large: of more than so many powers of e.
constexpr double kManyPowers = 80;
Expr half_exponential(const Expr& x) {
  const Expr half = exponential(x * 0.5);
  return half * 0.5 * half;
}
// Beyond it the square is as large as the square and 1, in all types, and may be too large.
constexpr double kFar = 1e9;

// What is no number is 0, what is beyond the range its border.
Expr saturated(const Expr& x, DType to) {
  double lo = 0, end = 0;  // end: the power of two behind the largest, exact in every float type
  Expr smallest, largest;
  runtime::with_dtype<runtime::kIntegers>(to, [&]<class T>(T) {
    using Limits = std::numeric_limits<T>;
    lo = static_cast<double>(Limits::min()), end = std::ldexp(1.0, Limits::digits);
    smallest = loop::integer_literal(to, static_cast<int64_t>(Limits::min()));
    largest = loop::integer_literal(to, static_cast<int64_t>(Limits::max()));
  });
  return choose(same(x, x),
                choose(below(x, lo), smallest, choose(less_equal(like(x, end), x), largest, loop::convert(to, x))),
                loop::integer_literal(to, 0));
}

Expected<std::vector<Value>> cast(const Operation& op) {
  const DType from = op.arg(0).dtype, to = op.dtype();
  return op.expression([=, value = op.arg(0)](const Dims& at) {
    const Expr x = value.at(at);
    if (from == to) return x;
    if (to == DType::kBool) return differs(x, like(x, 0));
    return loop::is_float(from) && !loop::is_float(to) ? saturated(x, to) : loop::convert(to, x);
  });
}

Expected<std::vector<Value>> sign(const Operation& op) {
  return op.expression([value = op.arg(0)](const Dims& at) {
    const Expr x = value.at(at);
    const bool is_signed = runtime::kSignedNumbers.contains(x->dtype);
    const Expr zero = loop::is_float(x->dtype) ? choose(same(x, x), like(x, 0), x) : like(x, 0);
    return choose(above(x, 0), like(x, 1), is_signed ? choose(below(x, 0), like(x, -1), zero) : zero);
  });
}

Expected<std::vector<Value>> abs(const Operation& op) {
  return op.expression([value = op.arg(0)](const Dims& at) {
    const Expr x = value.at(at);
    return runtime::kSignedNumbers.contains(x->dtype) ? absolute(x) : x;
  });
}

Expected<std::vector<Value>> bitwise_not(const Operation& op) {
  return op.expression([value = op.arg(0)](const Dims& at) {
    const Expr x = value.at(at);
    const int64_t ones = x->dtype == DType::kU8 ? 0xFF : x->dtype == DType::kU16 ? 0xFFFF : -1;
    return loop::binary(BinaryOp::kBitXor, x, loop::integer_literal(x->dtype, ones));
  });
}

template <UnaryOp unary>
constexpr Lower plain() {
  return each([](const Expr& x) { return loop::unary(unary, x); });
}

}  // namespace

std::span<const Lowering> math_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {"identity", each([](const Expr& x) { return x; })},
      {"cast", cast},
      {"abs", abs},
      {"negate", plain<UnaryOp::kNegate>()},
      {"sign", sign},
      {"reciprocal", each([](const Expr& x) { return 1.0 / x; })},
      {"exp", plain<UnaryOp::kExp>()},
      {"expm1", each([](const Expr& x) { return exponential_less_1(x); })},
      {"log", plain<UnaryOp::kLog>()},
      {"log1p", each([](const Expr& x) { return logarithm_of_1_and(x); })},
      {"sqrt", plain<UnaryOp::kSqrt>()},
      {"rsqrt", each([](const Expr& x) { return 1.0 / root(x); })},
      {"erf", plain<UnaryOp::kErf>()},
      {"sin", plain<UnaryOp::kSin>()},
      {"cos", plain<UnaryOp::kCos>()},
      {"tan", each([](const Expr& x) { return loop::unary(UnaryOp::kSin, x) / loop::unary(UnaryOp::kCos, x); })},
      {"asin", each([](const Expr& x) { return arc_tangent(x / root((1.0 - x) * (1.0 + x))); })},
      {"acos", each([](const Expr& x) { return 2.0 * arc_tangent(root((1.0 - x) / (1.0 + x))); })},
      {"atan", plain<UnaryOp::kAtan>()},
      {"sinh", each([](const Expr& x) {
         const Expr y = half_exponential(absolute(x));
         return choose(above(absolute(x), kManyPowers), choose(below(x, 0), -y, y),
                       (exponential_less_1(x) - exponential_less_1(-x)) * 0.5);
       })},
      {"cosh", each([](const Expr& x) {
         return choose(above(absolute(x), kManyPowers), half_exponential(absolute(x)),
                       (exponential(x) + exponential(-x)) * 0.5);
       })},
      {"asinh", each([](const Expr& x) {
         const Expr size = absolute(x);
         const Expr near = logarithm_of_1_and(size + size * size / (1.0 + root(size * size + 1.0)));
         const Expr y = choose(above(size, kFar), logarithm(size) + M_LN2, near);
         return choose(below(x, 0), -y, y);
       })},
      {"acosh", each([](const Expr& x) {
         const Expr above_1 = x - 1.0;
         return choose(above(x, kFar), logarithm(x) + M_LN2,
                       logarithm_of_1_and(above_1 + root(above_1) * root(x + 1.0)));
       })},
      {"atanh", each([](const Expr& x) { return logarithm_of_1_and(2.0 * x / (1.0 - x)) * 0.5; })},
      {"floor", plain<UnaryOp::kFloor>()},
      {"ceil", plain<UnaryOp::kCeil>()},
      {"round", plain<UnaryOp::kRound>()},
      {"trunc", each([](const Expr& x) { return truncated(x); })},
      {"is_nan", each([](const Expr& x) { return differs(x, x); })},
      {"is_inf", each([](const Expr& x) { return same(absolute(x), like(x, HUGE_VAL)); })},
      {"logical_not", each([](const Expr& x) { return negated(x); })},
      {"bitwise_not", bitwise_not},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
