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

Operator activation(std::string name, std::string documentation, std::vector<AttrSpec> attributes = {}) {
  return {std::move(name), std::move(documentation), {{"x", kReals}}, std::move(attributes),
          same_as_first,   OpPattern::kElementwise};
}

}  // namespace

std::vector<Operator> activation_operators() {
  return {
      continuous({"relu", "max(x, 0).", {{"x", kNumericTypes}}, {}, same_as_first, OpPattern::kElementwise}),
      continuous({"clip",
                  "min(max(x, min), max).",
                  {{"x", kNumericTypes}},
                  {{"min", AttrKind::kFloat, std::nullopt, "lower bound"},
                   {"max", AttrKind::kFloat, std::nullopt, "upper bound"}},
                  clip,
                  OpPattern::kElementwise,
                  nullptr,
                  as_first}),
      continuous({"prelu",
                  "x where x >= 0, else slope * x; slope broadcasts to x's shape.",
                  {{"x", kReals}, Input::same("slope")},
                  {},
                  prelu,
                  OpPattern::kBroadcast}),
      continuous(activation("sigmoid", "1 / (1 + exp(-x)).")),
      continuous(activation("tanh", "Hyperbolic tangent of x.")),
      continuous(activation("softplus", "ln(1 + exp(x)).")),
      continuous(activation("softsign", "x / (1 + |x|).")),
      continuous(
          activation("swish", "x * sigmoid(alpha * x).", {factor("alpha", 1, "slope of the sigmoid's argument")})),
      continuous(activation("mish", "x * tanh(softplus(x)).")),
      continuous(activation("gelu", "x / 2 * (1 + erf(x / sqrt(2))).")),
      continuous(activation("gelu_tanh",
                            "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), the approximation of gelu.")),
      continuous(activation("elu", "x where x >= 0, else alpha * (exp(x) - 1).", {factor("alpha", 1, "limit of -x")})),
      continuous(activation("selu", "gamma * x where x > 0, else gamma * alpha * (exp(x) - 1).",
                            {factor("alpha", 1.6732632423543772, "limit of -x, before gamma"),
                             factor("gamma", 1.0507009873554805, "scale")})),
      continuous(activation("celu", "x where x >= 0, else alpha * (exp(x / alpha) - 1).",
                            {factor("alpha", 1, "limit of -x")})),
      continuous(activation("leaky_relu", "x where x >= 0, else alpha * x.",
                            {factor("alpha", 0.01, "slope of negative values")})),
      activation("thresholded_relu", "x where x > alpha, else 0.", {factor("alpha", 1, "threshold")}),
      continuous(activation("hard_sigmoid", "max(0, min(1, alpha * x + beta)).",
                            {factor("alpha", 0.2, "slope"), factor("beta", 0.5, "value at 0")})),
      continuous(activation("hard_swish", "x * max(0, min(1, x / 6 + 0.5)).")),
      activation("shrink", "x + bias where x < -lambda, x - bias where x > lambda, else 0.",
                 {factor("bias", 0, "subtracted from the magnitude"),
                  factor("lambda", 0.5, "half the width of the dead zone")}),
  };
}

}  // namespace tenon::compiler
