// Rectifiers, sigmoids and their relatives.
#include <cmath>
#include <limits>

#include "compiler/kernels/lowerings.h"
#include "runtime/reference/dtypes.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

// f(x) or f(x, attributes...) for each element; F captures nothing.
template <class F>
constexpr Lower each(F) {
  return [](const Operation& op) -> Values {
    return op.expression([value = op.arg(0)](const Dims& at) { return F{}(value.at(at)); });
  };
}
template <class F>
Values with_attributes(const Operation& op, F f) {
  return op.expression([f, value = op.arg(0)](const Dims& at) { return f(value.at(at)); });
}

// The number in the type of x, moved into its range and, of integers, into the interval.
Expr bound(const Expr& x, double value, bool lower) {
  if (loop::is_float(x->dtype)) return like(x, value);
  value = lower ? std::ceil(value) : std::floor(value);
  Expr result;
  runtime::with_dtype<runtime::kIntegers>(x->dtype, [&]<class T>(T) {
    using Limits = std::numeric_limits<T>;
    int64_t whole = 0;
    if (value < static_cast<double>(Limits::min())) whole = static_cast<int64_t>(Limits::min());
    else if (value >= std::ldexp(1.0, Limits::digits)) whole = static_cast<int64_t>(Limits::max());
    else whole = static_cast<int64_t>(value);
    result = loop::integer_literal(x->dtype, whole);
  });
  return result;
}

Values clip(const Operation& op) {
  const double lo = op.real("min"), hi = op.real("max");
  if (!(lo <= hi)) return error("min is above max");
  return with_attributes(op,
                         [=](const Expr& x) { return smaller(larger(x, bound(x, lo, true)), bound(x, hi, false)); });
}
Values relu(const Operation& op) {
  return with_attributes(
      op, [](const Expr& x) { return runtime::kSignedNumbers.contains(x->dtype) ? larger(x, like(x, 0)) : x; });
}

Values prelu(const Operation& op) {
  return op.expression([x = op.arg(0), slope = op.arg(1), &context = op.context()](const Dims& at) {
    const Expr value = x.at(at);
    return choose(below(value, 0), broadcast(context, slope, at) * value, value);
  });
}

Expr softplus(const Expr& x) { return larger(x, like(x, 0)) + logarithm_of_1_and(exponential(-absolute(x))); }
Expr hard_sigmoid(const Expr& x, double alpha, double beta) {
  return larger(like(x, 0), smaller(like(x, 1), alpha * x + beta));
}

}  // namespace

std::span<const Lowering> activation_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {"relu", relu},
      {"clip", clip},
      {"prelu", prelu},
      {"sigmoid", each([](const Expr& x) { return sigmoid(x); })},
      {"tanh", each([](const Expr& x) { return hyperbolic_tangent(x); })},
      {"softplus", each([](const Expr& x) { return softplus(x); })},
      {"softsign", each([](const Expr& x) { return x / (1.0 + absolute(x)); })},
      {"mish", each([](const Expr& x) { return x * hyperbolic_tangent(softplus(x)); })},
      {"gelu", each([](const Expr& x) { return x * 0.5 * (1.0 + loop::unary(UnaryOp::kErf, x * M_SQRT1_2)); })},
      {"gelu_tanh", each([](const Expr& x) {
         return x * 0.5 * (1.0 + hyperbolic_tangent(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
       })},
      {"hard_swish", each([](const Expr& x) { return x * hard_sigmoid(x, 1.0 / 6, 0.5); })},
      {"swish",
       [](const Operation& op) {
         return with_attributes(
             op, [alpha = op.real("alpha")](const Expr& x) { return x * sigmoid(alpha == 1 ? x : alpha * x); });
       }},
      {"elu",
       [](const Operation& op) {
         return with_attributes(op, [alpha = op.real("alpha")](const Expr& x) {
           return choose(below(x, 0), alpha * exponential_less_1(x), x);
         });
       }},
      {"selu",
       [](const Operation& op) {
         return with_attributes(op, [alpha = op.real("alpha"), gamma = op.real("gamma")](const Expr& x) {
           return gamma * choose(above(x, 0), x, alpha * exponential_less_1(x));
         });
       }},
      {"celu",
       [](const Operation& op) {
         return with_attributes(op, [alpha = op.real("alpha")](const Expr& x) {
           return choose(below(x, 0), alpha * exponential_less_1(x / alpha), x);
         });
       }},
      {"leaky_relu",
       [](const Operation& op) {
         return with_attributes(
             op, [alpha = op.real("alpha")](const Expr& x) { return choose(below(x, 0), alpha * x, x); });
       }},
      {"thresholded_relu",
       [](const Operation& op) {
         return with_attributes(
             op, [alpha = op.real("alpha")](const Expr& x) { return choose(above(x, alpha), x, like(x, 0)); });
       }},
      {"hard_sigmoid",
       [](const Operation& op) {
         return with_attributes(op, [alpha = op.real("alpha"), beta = op.real("beta")](const Expr& x) {
           return hard_sigmoid(x, alpha, beta);
         });
       }},
      {"shrink",
       [](const Operation& op) {
         return with_attributes(op, [bias = op.real("bias"), lambda = op.real("lambda")](const Expr& x) {
           return choose(below(x, -lambda), x + bias, choose(above(x, lambda), x - bias, like(x, 0)));
         });
       }},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
