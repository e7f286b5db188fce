// Functions of one element: the result has the shape of x.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

using runtime::DTypes, runtime::ScalarOp;

Expected<Type> to_bool(const RuleInput& in) { return in.context.tensor(in.arg(0).dims, DType::kBool); }

Operator function(Operator op) {
  if (op.inputs.empty()) op.inputs = {{"x", runtime::kReals}};
  if (!op.rule) op.rule = same_as_first;
  op.pattern = OpPattern::kElementwise;
  return op;
}

}  // namespace

std::vector<Operator> math_operators() {
  return {
      function({.name = "abs",
                .documentation = "|x|; the smallest integer of a dtype stays as it is.",
                .inputs = {{"x", runtime::kNumericTypes}},
                .continuous = true}),
      function({.name = "negate",
                .documentation = "-x; integers wrap.",
                .inputs = {{"x", runtime::kSignedNumericTypes}},
                .continuous = true}),
      function({.name = "sign",
                .documentation = "-1, 0 or 1 as x is below, equal to or above 0.",
                .inputs = {{"x", runtime::kNumericTypes}}}),
      function({.name = "reciprocal",
                .documentation = "1 / x.",
                .continuous = true,
                .samples = SampleArguments::above_zero()}),
      function({.name = "exp", .documentation = "e to the power of x.", .continuous = true}),
      function({.name = "expm1", .documentation = "exp(x) - 1, exact near 0.", .continuous = true}),
      function({.name = "log",
                .documentation = "Natural logarithm of x.",
                .continuous = true,
                .samples = SampleArguments::above_zero()}),
      function({.name = "log1p",
                .documentation = "log(1 + x), exact near 0.",
                .continuous = true,
                .samples = SampleArguments::above_zero()}),
      function({.name = "sqrt",
                .documentation = "Square root of x; NaN where x < 0.",
                .continuous = true,
                .samples = SampleArguments::above_zero()}),
      function({.name = "rsqrt",
                .documentation = "1 / sqrt(x).",
                .continuous = true,
                .samples = SampleArguments::above_zero()}),
      function({.name = "erf", .documentation = "Gauss error function of x.", .continuous = true}),
      function({.name = "sin", .documentation = "Sine of x, in radians.", .continuous = true}),
      function({.name = "cos", .documentation = "Cosine of x, in radians.", .continuous = true}),
      function({.name = "tan", .documentation = "Tangent of x, in radians."}),
      function({.name = "asin",
                .documentation = "The angle in -pi/2 .. pi/2 whose sine is x.",
                .samples = SampleArguments::unit_interval()}),
      function({.name = "acos",
                .documentation = "The angle in 0 .. pi whose cosine is x.",
                .samples = SampleArguments::unit_interval()}),
      function({.name = "atan", .documentation = "The angle in -pi/2 .. pi/2 whose tangent is x.", .continuous = true}),
      function({.name = "sinh", .documentation = "Hyperbolic sine of x.", .continuous = true}),
      function({.name = "cosh", .documentation = "Hyperbolic cosine of x.", .continuous = true}),
      function({.name = "asinh", .documentation = "The value whose hyperbolic sine is x.", .continuous = true}),
      function({.name = "acosh",
                .documentation = "The value >= 0 whose hyperbolic cosine is x.",
                .samples = SampleArguments::above_one()}),
      function({.name = "atanh",
                .documentation = "The value whose hyperbolic tangent is x.",
                .samples = SampleArguments::unit_interval()}),
      function({.name = "floor", .documentation = "The largest integer that is not above x."}),
      function({.name = "ceil", .documentation = "The smallest integer that is not below x."}),
      function({.name = "round", .documentation = "The integer nearest to x; ties round to even."}),
      function({.name = "trunc", .documentation = "x without its fraction."}),
      function({.name = "is_nan",
                .documentation = "Whether x is NaN; bool.",
                .inputs = {{"x", runtime::kReals}},
                .rule = to_bool}),
      function({.name = "is_inf",
                .documentation = "Whether x is infinite; bool.",
                .inputs = {{"x", runtime::kReals}},
                .rule = to_bool}),
      function({.name = "logical_not",
                .documentation = "Whether x is false.",
                .inputs = {{"x", runtime::kBoolean}},
                .scalar = ScalarOp::kXor}),
      function({.name = "bitwise_not",
                .documentation = "x with all its bits inverted.",
                .inputs = {{"x", runtime::kIntegers}}}),
  };
}

}  // namespace tenon::compiler
