// Gradients of activations.
#include <numbers>

#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler::gradients {
namespace {

// dy where x > 0, else dy * slope.
Term one_sided(GradientBuilder& g, const Term& slope) {
  return select(less_equal(g.arg(0), 0), g.cotangent() * slope, g.cotangent());
}

Status prelu(GradientBuilder& g) {
  const Term x = g.arg(0), dy = g.cotangent();
  if (g.wants(0)) g.add(0, one_sided(g, g.arg(1)));
  if (g.wants(1)) g.add(1, keep_where(less_equal(x, 0), dy * x));
  return g.status();
}

// x * sigmoid(alpha * x)
Term swish_derivative(GradientBuilder& g) {
  const Term x = g.arg(0) * float_attr(g, "alpha"), s = sigmoid(x);
  return s + x * s * (1 - s);
}

// x * tanh(softplus(x))
Term mish_derivative(GradientBuilder& g) {
  const Term x = g.arg(0), t = tanh(g.apply(ops::kSoftplus, {x}));
  return t + x * (1 - t * t) * sigmoid(x);
}

// x * P(x), with the normal distribution's P and density.
Term gelu_derivative(GradientBuilder& g) {
  const Term x = g.arg(0);
  const Term below = g.apply(ops::kErf, {x * (1 / std::numbers::sqrt2)}) * 0.5 + 0.5;
  const Term density = exp(x * x * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return below + x * density;
}

// x / 2 * (1 + tanh(u)), u = sqrt(2 / pi) * (x + 0.044715 x^3)
Term gelu_tanh_derivative(GradientBuilder& g) {
  constexpr double kScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCubic = 0.044715;
  const Term x = g.arg(0), square = x * x;
  const Term t = tanh(x * (square * kCubic + 1) * kScale);
  const Term inner = (square * (3 * kCubic) + 1) * kScale;
  return (t + 1) * 0.5 + x * (1 - t * t) * inner * 0.5;
}

constexpr GradientRow kActivations[] = {
    {ops::kRelu,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, drop_where(less_equal(g.arg(0), 0), g.cotangent()));
       return g.status();
     },
     "0 at 0"},
    {ops::kClip,
     [](GradientBuilder& g) {
       const Term x = g.arg(0);
       const Term inside = both(less_equal(g.scalar(float_attr(g, "min"), x.dtype()), x),
                                less_equal(x, g.scalar(float_attr(g, "max"), x.dtype())));
       if (g.wants(0)) g.add(0, keep_where(inside, g.cotangent()));
       return g.status();
     },
     "1 at the bounds"},
    {ops::kPrelu, prelu, "slope at x = 0, and 0 by slope"},
    {ops::kSigmoid, chain<[](GradientBuilder& g) { return g.result() * (1 - g.result()); }>},
    {ops::kTanh, chain<[](GradientBuilder& g) { return 1 - g.result() * g.result(); }>},
    {ops::kSoftplus, chain<[](GradientBuilder& g) { return sigmoid(g.arg(0)); }>},
    {ops::kSoftsign,
     [](GradientBuilder& g) {
       const Term below = abs(g.arg(0)) + 1;
       if (g.wants(0)) g.add(0, g.cotangent() / (below * below));
       return g.status();
     }},
    {ops::kSwish, chain<swish_derivative>},
    {ops::kMish, chain<mish_derivative>},
    {ops::kGelu, chain<gelu_derivative>},
    {ops::kGeluTanh, chain<gelu_tanh_derivative>},
    {ops::kElu,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, one_sided(g, exp(g.arg(0)) * float_attr(g, "alpha")));
       return g.status();
     },
     "alpha at 0"},
    {ops::kSelu,
     [](GradientBuilder& g) {
       if (!g.wants(0)) return g.status();
       const double alpha = float_attr(g, "alpha"), gamma = float_attr(g, "gamma");
       g.add(0, one_sided(g, exp(g.arg(0)) * alpha) * gamma);
       return g.status();
     },
     "gamma * alpha at 0"},
    {ops::kCelu,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, one_sided(g, exp(g.arg(0) / float_attr(g, "alpha"))));
       return g.status();
     }},
    {ops::kLeakyRelu,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, one_sided(g, g.scalar(float_attr(g, "alpha"), g.arg(0).dtype())));
       return g.status();
     },
     "alpha at 0"},
    {ops::kThresholdedRelu,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, drop_where(less_equal(g.arg(0), float_attr(g, "alpha")), g.cotangent()));
       return g.status();
     },
     "0 at alpha"},
    {ops::kHardSigmoid,
     [](GradientBuilder& g) {
       if (!g.wants(0)) return g.status();
       const double alpha = float_attr(g, "alpha");
       const Term line = g.arg(0) * alpha + float_attr(g, "beta");
       const Term inside = both(less(g.scalar(0, line.dtype()), line), less(line, 1));
       g.add(0, keep_where(inside, g.cotangent() * alpha));
       return g.status();
     },
     "0 at the bounds"},
    {ops::kHardSwish,
     [](GradientBuilder& g) {
       if (!g.wants(0)) return g.status();
       const Term x = g.arg(0), dy = g.cotangent();
       g.add(0, select(less(x, 3), drop_where(less_equal(x, -3), dy * (x / 3 + 0.5)), dy));
       return g.status();
     },
     "0 at -3, 1 at 3"},
    {ops::kShrink,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, drop_where(less_equal(abs(g.arg(0)), float_attr(g, "lambda")), g.cotangent()));
       return g.status();
     },
     "0 at -lambda and lambda"},
};

}  // namespace

std::span<const GradientRow> activation_gradients() { return kActivations; }

}  // namespace tenon::compiler::gradients
