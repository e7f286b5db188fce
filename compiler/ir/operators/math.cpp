// Functions of one element: the result has the shape of x.
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
      continuous(function("abs", "|x|; the smallest integer of a dtype stays as it is.", runtime::kNumericTypes)),
      continuous(function("negate", "-x; integers wrap.", runtime::kSignedNumericTypes)),
      function("sign", "-1, 0 or 1 as x is below, equal to or above 0.", runtime::kNumericTypes),
      continuous(function("reciprocal", "1 / x."), SampleArguments::above_zero()),
      continuous(function("exp", "e to the power of x.")),
      continuous(function("expm1", "exp(x) - 1, exact near 0.")),
      continuous(function("log", "Natural logarithm of x."), SampleArguments::above_zero()),
      continuous(function("log1p", "log(1 + x), exact near 0."), SampleArguments::above_zero()),
      continuous(function("sqrt", "Square root of x; NaN where x < 0."), SampleArguments::above_zero()),
      continuous(function("rsqrt", "1 / sqrt(x)."), SampleArguments::above_zero()),
      continuous(function("erf", "Gauss error function of x.")),
      continuous(function("sin", "Sine of x, in radians.")),
      continuous(function("cos", "Cosine of x, in radians.")),
      function("tan", "Tangent of x, in radians."),
      sampled(function("asin", "The angle in -pi/2 .. pi/2 whose sine is x."), SampleArguments::unit_interval()),
      sampled(function("acos", "The angle in 0 .. pi whose cosine is x."), SampleArguments::unit_interval()),
      continuous(function("atan", "The angle in -pi/2 .. pi/2 whose tangent is x.")),
      continuous(function("sinh", "Hyperbolic sine of x.")),
      continuous(function("cosh", "Hyperbolic cosine of x.")),
      continuous(function("asinh", "The value whose hyperbolic sine is x.")),
      sampled(function("acosh", "The value >= 0 whose hyperbolic cosine is x."), SampleArguments::above_one()),
      sampled(function("atanh", "The value whose hyperbolic tangent is x."), SampleArguments::unit_interval()),
      function("floor", "The largest integer that is not above x."),
      function("ceil", "The smallest integer that is not below x."),
      function("round", "The integer nearest to x; ties round to even."),
      function("trunc", "x without its fraction."),
      function("is_nan", "Whether x is NaN; bool.", runtime::kReals, to_bool),
      function("is_inf", "Whether x is infinite; bool.", runtime::kReals, to_bool),
      function("logical_not", "Whether x is false.", runtime::kBoolean),
      function("bitwise_not", "x with all its bits inverted.", runtime::kIntegers),
  };
}

}  // namespace tenon::compiler
