// ReLU, sigmoid and related activations: the result has the type of x.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

using runtime::kNumericTypes, runtime::kReals;

Expected<Type> clip(const RuleInput& in) {
  const double lo = float_attr(in.attrs, "min"), hi = float_attr(in.attrs, "max");
  if (lo > hi) return error(fmt::format("min {} is above max {}", lo, hi));
  return in.args[0];
}

Expected<Type> prelu(const RuleInput& in) {
  constexpr std::string_view kWhat = "slope must broadcast to x's shape";
  const Dims &x = in.arg(0).dims, &slope = in.arg(1).dims;
  if (slope.size() > x.size()) return error(fmt::format("{}: {}", kWhat, describe(in, {"x", "slope"})));
  for (size_t i = 0; i < slope.size(); ++i) {
    if (slope[i].constant() != 1) TENON_TRY(require_size(in, 1, i, x[x.size() - slope.size() + i], kWhat));
  }
  return in.args[0];
}

AttrSpec factor(std::string name, double value, std::string documentation) {
  return {std::move(name), AttrKind::kFloat, value, std::move(documentation)};
}

Operator activation(Operator op) {
  op.inputs = {{"x", kReals}};
  op.rule = same_as_first;
  op.pattern = OpPattern::kElementwise;
  return op;
}

}  // namespace

std::vector<Operator> activation_operators() {
  return {
      {.name = "relu",
       .documentation = "max(x, 0).",
       .inputs = {{"x", kNumericTypes}},
       .rule = same_as_first,
       .pattern = OpPattern::kElementwise,
       .continuous = true},
      {.name = "clip",
       .documentation = "min(max(x, min), max).",
       .inputs = {{"x", kNumericTypes}},
       .attributes = {{"min", AttrKind::kFloat, std::nullopt, "lower bound"},
                      {"max", AttrKind::kFloat, std::nullopt, "upper bound"}},
       .rule = clip,
       .pattern = OpPattern::kElementwise,
       .scheme = as_first,
       .continuous = true},
      {.name = "prelu",
       .documentation = "x where x >= 0, else slope * x; slope broadcasts to x's shape.",
       .inputs = {{"x", kReals}, Input::same("slope")},
       .rule = prelu,
       .pattern = OpPattern::kBroadcast,
       .continuous = true},
      activation({.name = "sigmoid", .documentation = "1 / (1 + exp(-x)).", .continuous = true}),
      activation({.name = "tanh", .documentation = "Hyperbolic tangent of x.", .continuous = true}),
      activation({.name = "softplus", .documentation = "ln(1 + exp(x)).", .continuous = true}),
      activation({.name = "softsign", .documentation = "x / (1 + |x|).", .continuous = true}),
      activation({.name = "swish",
                  .documentation = "x * sigmoid(alpha * x).",
                  .attributes = {factor("alpha", 1, "slope of the sigmoid's argument")},
                  .continuous = true}),
      activation({.name = "mish", .documentation = "x * tanh(softplus(x)).", .continuous = true}),
      activation({.name = "gelu", .documentation = "x / 2 * (1 + erf(x / sqrt(2))).", .continuous = true}),
      activation(
          {.name = "gelu_tanh",
           .documentation = "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), the approximation of gelu.",
           .continuous = true}),
      activation({.name = "elu",
                  .documentation = "x where x >= 0, else alpha * (exp(x) - 1).",
                  .attributes = {factor("alpha", 1, "limit of -x")},
                  .continuous = true}),
      activation({.name = "selu",
                  .documentation = "gamma * x where x > 0, else gamma * alpha * (exp(x) - 1).",
                  .attributes = {factor("alpha", 1.6732632423543772, "limit of -x, before gamma"),
                                 factor("gamma", 1.0507009873554805, "scale")},
                  .continuous = true}),
      activation({.name = "celu",
                  .documentation = "x where x >= 0, else alpha * (exp(x / alpha) - 1).",
                  .attributes = {factor("alpha", 1, "limit of -x")},
                  .continuous = true}),
      activation({.name = "leaky_relu",
                  .documentation = "x where x >= 0, else alpha * x.",
                  .attributes = {factor("alpha", 0.01, "slope of negative values")},
                  .continuous = true}),
      activation({.name = "thresholded_relu",
                  .documentation = "x where x > alpha, else 0.",
                  .attributes = {factor("alpha", 1, "threshold")}}),
      activation({.name = "hard_sigmoid",
                  .documentation = "max(0, min(1, alpha * x + beta)).",
                  .attributes = {factor("alpha", 0.2, "slope"), factor("beta", 0.5, "value at 0")},
                  .continuous = true}),
      activation({.name = "hard_swish", .documentation = "x * max(0, min(1, x / 6 + 0.5)).", .continuous = true}),
      activation({.name = "shrink",
                  .documentation = "x + bias where x < -lambda, x - bias where x > lambda, else 0.",
                  .attributes = {factor("bias", 0, "subtracted from the magnitude"),
                                 factor("lambda", 0.5, "half the width of the dead zone")}}),
  };
}

}  // namespace tenon::compiler
