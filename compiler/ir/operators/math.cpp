// Functions of one element: the result has x's shape.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

using runtime::DTypes;

Expected<Type> to_bool(const RuleInput& in) { return in.context.tensor(in.arg(0).dims, DType::kBool); }

Operator function(std::string name, std::string documentation, DTypes dtypes = runtime::kReals,
                  TypeRule rule = same_as_first) {
  return {std::move(name), std::move(documentation), {{"x", dtypes}}, {}, rule, OpPattern::kElementwise};
}

}  // namespace

std::vector<Operator> math_operators() {
  return {
      function("abs", "|x|; the smallest integer of a dtype stays as it is.", runtime::kNumbers),
      function("negate", "-x; integers wrap.", runtime::kSignedNumbers),
      function("sign", "-1, 0 or 1 as x is below, equal to or above 0.", runtime::kNumbers),
      function("reciprocal", "1 / x."),
      function("exp", "e to the power of x."),
      function("expm1", "exp(x) - 1, exact near 0."),
      function("log", "Natural logarithm of x."),
      function("log1p", "log(1 + x), exact near 0."),
      function("sqrt", "Square root of x; not a number where x < 0."),
      function("rsqrt", "1 / sqrt(x)."),
      function("erf", "Gauss error function of x."),
      function("sin", "Sine of x, in radians."),
      function("cos", "Cosine of x, in radians."),
      function("tan", "Tangent of x, in radians."),
      function("asin", "The angle in -pi/2 .. pi/2 whose sine is x."),
      function("acos", "The angle in 0 .. pi whose cosine is x."),
      function("atan", "The angle in -pi/2 .. pi/2 whose tangent is x."),
      function("sinh", "Hyperbolic sine of x."),
      function("cosh", "Hyperbolic cosine of x."),
      function("asinh", "The value whose hyperbolic sine is x."),
      function("acosh", "The value >= 0 whose hyperbolic cosine is x."),
      function("atanh", "The value whose hyperbolic tangent is x."),
      function("floor", "The largest whole number that is not above x."),
      function("ceil", "The smallest whole number that is not below x."),
      function("round", "The whole number nearest to x; halves go to the even one."),
      function("trunc", "x without its fraction."),
      function("is_nan", "Whether x is not a number; bool.", runtime::kReals, to_bool),
      function("is_inf", "Whether x is infinite; bool.", runtime::kReals, to_bool),
      function("logical_not", "Whether x is false.", runtime::kBoolean),
      function("bitwise_not", "x with all its bits inverted.", runtime::kIntegers),
  };
}

}  // namespace tenon::compiler
