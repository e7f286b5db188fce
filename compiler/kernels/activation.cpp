// Activation functions: ReLU, sigmoid and their variants.
#include <cmath>
#include <limits>

#include "compiler/kernels/lowerings.h"
#include "runtime/dtype.h"

namespace tenon::compiler::kernels {
namespace {

// f(x) for each element, where f captures the operator's attributes.
template <class F>
LoweredResults with_attributes(const OperatorCall& op, F f) {
  return op.expression([f, value = op.arg(0)](const Dims& at) { return f(value.at(at)); });
}

// The limit of a clip as a constant of x's type: saturated to the range of the type and, for integer types, rounded
// into the interval.
Expr clip_limit(const Expr& x, double value, bool lower) {
  if (loop::is_float(x->dtype)) return like(x, value);
  value = lower ? std::ceil(value) : std::floor(value);
  Expr result;
  runtime::with_dtype<runtime::kIntegers>(x->dtype, [&]<class T>(T) {
    using Limits = std::numeric_limits<T>;
    int64_t integer = 0;
    if (value < static_cast<double>(Limits::min())) integer = static_cast<int64_t>(Limits::min());
    else if (value >= std::ldexp(1.0, Limits::digits)) integer = static_cast<int64_t>(Limits::max());
    else integer = static_cast<int64_t>(value);
    result = loop::integer_literal(x->dtype, integer);
  });
  return result;
}

LoweredResults clip(const OperatorCall& op) {
  const double lo = op.real("min"), hi = op.real("max");
  if (!(lo <= hi)) return error("min is greater than max");
  return with_attributes(
      op, [=](const Expr& x) { return minimum(maximum(x, clip_limit(x, lo, true)), clip_limit(x, hi, false)); });
}
LoweredResults relu(const OperatorCall& op) {
  return with_attributes(
      op, [](const Expr& x) { return runtime::kSignedNumericTypes.contains(x->dtype) ? maximum(x, like(x, 0)) : x; });
}

LoweredResults prelu(const OperatorCall& op) {
  return op.expression([x = op.arg(0), slope = op.arg(1), &context = op.context()](const Dims& at) {
    const Expr value = x.at(at);
    return select(below(value, 0), broadcast(context, slope, at) * value, value);
  });
}

Expr softplus(const Expr& x) { return maximum(x, like(x, 0)) + log1p(exponential(-absolute(x))); }
Expr hard_sigmoid(const Expr& x, double alpha, double beta) {
  return maximum(minimum(alpha * x + beta, like(x, 1)), like(x, 0));
}

}  // namespace

std::span<const Lowering> activation_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {ops::kRelu, relu},
      {ops::kClip, clip},
      {ops::kPrelu, prelu},
      {ops::kSigmoid, elementwise([](const Expr& x) { return sigmoid(x); })},
      {ops::kTanh, elementwise([](const Expr& x) { return tanh(x); })},
      {ops::kSoftplus, elementwise([](const Expr& x) { return softplus(x); })},
      {ops::kSoftsign, elementwise([](const Expr& x) { return x / (1.0 + absolute(x)); })},
      {ops::kMish, elementwise([](const Expr& x) { return x * tanh(softplus(x)); })},
      {ops::kGelu,
       elementwise([](const Expr& x) { return x * 0.5 * (1.0 + loop::unary(UnaryOp::kErf, x * M_SQRT1_2)); })},
      {ops::kGeluTanh, elementwise([](const Expr& x) {
         return x * 0.5 * (1.0 + tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
       })},
      {ops::kHardSwish, elementwise([](const Expr& x) { return x * hard_sigmoid(x, 1.0 / 6, 0.5); })},
      {ops::kSwish,
       [](const OperatorCall& op) {
         return with_attributes(
             op, [alpha = op.real("alpha")](const Expr& x) { return x * sigmoid(alpha == 1 ? x : alpha * x); });
       }},
      {ops::kElu,
       [](const OperatorCall& op) {
         return with_attributes(
             op, [alpha = op.real("alpha")](const Expr& x) { return select(below(x, 0), alpha * expm1(x), x); });
       }},
      {ops::kSelu,
       [](const OperatorCall& op) {
         return with_attributes(op, [alpha = op.real("alpha"), gamma = op.real("gamma")](const Expr& x) {
           return gamma * select(above(x, 0), x, alpha * expm1(x));
         });
       }},
      {ops::kCelu,
       [](const OperatorCall& op) {
         return with_attributes(op, [alpha = op.real("alpha")](const Expr& x) {
           return select(below(x, 0), alpha * expm1(x / alpha), x);
         });
       }},
      {ops::kLeakyRelu,
       [](const OperatorCall& op) {
         return with_attributes(
             op, [alpha = op.real("alpha")](const Expr& x) { return select(below(x, 0), alpha * x, x); });
       }},
      {ops::kThresholdedRelu,
       [](const OperatorCall& op) {
         return with_attributes(
             op, [alpha = op.real("alpha")](const Expr& x) { return select(above(x, alpha), x, like(x, 0)); });
       }},
      {ops::kHardSigmoid,
       [](const OperatorCall& op) {
         return with_attributes(op, [alpha = op.real("alpha"), beta = op.real("beta")](const Expr& x) {
           return hard_sigmoid(x, alpha, beta);
         });
       }},
      {ops::kShrink,
       [](const OperatorCall& op) {
         return with_attributes(op, [bias = op.real("bias"), lambda = op.real("lambda")](const Expr& x) {
           return select(below(x, -lambda), x + bias, select(above(x, lambda), x - bias, like(x, 0)));
         });
       }},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
