// Normalizations: the result has the type of x.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

using runtime::kReals;

Status check_epsilon(const RuleInput& in) {
  const double epsilon = float_attr(in.attrs, "epsilon");
  if (epsilon >= 0) return {};
  return error(fmt::format("epsilon must not be negative, found {}", epsilon));
}

// x is [N, C, ...], and each parameter is a vector of C elements.
Expected<Type> per_channel(const RuleInput& in, std::initializer_list<const char*> parameters,
                           std::optional<Dim> channels = std::nullopt) {
  if (in.arg(0).rank() < 2) return error(fmt::format("x must have at least 2 dims: {}", describe(in, {"x"})));
  size_t i = 1;
  for (const char* name : parameters)
    TENON_TRY(check_vector(in, i++, name, in.arg(0).dtype, channels.value_or(in.arg(0).dims[1])));
  TENON_TRY(check_epsilon(in));
  return in.args[0];
}

Expected<Type> batch_norm(const RuleInput& in) { return per_channel(in, {"gamma", "beta", "mean", "variance"}); }
Expected<Type> instance_norm(const RuleInput& in) { return per_channel(in, {"scale", "bias"}); }

Expected<Type> group_norm(const RuleInput& in) {
  TENON_TRY(check_int(in, "groups", 1, int64_t{1} << 31));
  const int64_t groups = int_attr(in.attrs, "groups");
  if (in.arg(0).rank() < 2) return error(fmt::format("x must have at least 2 dims: {}", describe(in, {"x"})));
  Dims dims = in.arg(0).dims;
  TENON_TRY_ASSIGN(of_group, require_quotient(in, 0, 1, groups,
                                              fmt::format("{} channels do not divide into {} groups",
                                                          in.context.str(dims[1]), groups)));
  dims[1] = in.context.multiply(*of_group, in.context.dim(groups));
  TENON_TRY(per_channel(in, {"scale", "bias"}, dims[1]));
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

// The parameters have the dims of x from `axis` on.
Expected<Type> over_last_dims(const RuleInput& in) {
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", in.arg(0).rank()));
  const Type wanted = in.context.tensor(Dims(in.arg(0).dims.begin() + *axis, in.arg(0).dims.end()), in.arg(0).dtype);
  for (size_t i = 1; i < in.args.size(); ++i) {
    TENON_TRY(require_type(in, i, i == 1 ? "scale" : "bias", wanted));
  }
  TENON_TRY(check_epsilon(in));
  return in.args[0];
}

Expected<Type> lp_normalize(const RuleInput& in) {
  TENON_TRY(axis_of(in, "axis", in.arg(0).rank()));
  TENON_TRY(check_int(in, "p", 1, 2));
  return in.args[0];
}

Expected<Type> local_response_norm(const RuleInput& in) {
  if (in.arg(0).rank() < 2) return error(fmt::format("x must have at least 2 dims: {}", describe(in, {"x"})));
  TENON_TRY(check_int(in, "size", 1, 1 << 20));
  return in.args[0];
}

AttrSpec epsilon_attribute() { return {"epsilon", AttrKind::kFloat, 1e-5, "added to the variance"}; }
AttrSpec first_axis_attribute() { return {"axis", AttrKind::kInt, int64_t{-1}, "first of the normalized dims"}; }

}  // namespace

std::vector<Operator> normalize_operators() {
  return {
      {.name = "batch_norm",
       .documentation = "gamma * (x - mean) / sqrt(variance + epsilon) + beta per channel of axis 1.",
       .inputs = {{"x", kReals}, "gamma", "beta", "mean", "variance"},
       .attributes = {epsilon_attribute()},
       .rule = batch_norm,
       .pattern = OpPattern::kBroadcast,
       .scheme = as_first,
       .continuous = true,
       .samples = SampleArguments::statistics()},
      {.name = "layer_norm",
       .documentation =
           "scale * (x - mean) / sqrt(variance + epsilon) + bias, with mean and variance over the dims from "
           "axis on, which "
           "are the dims of scale and bias.",
       .inputs = {{"x", kReals}, "scale", "bias"},
       .attributes = {first_axis_attribute(), epsilon_attribute()},
       .rule = over_last_dims,
       .continuous = true},
      {.name = "rms_norm",
       .documentation =
           "scale * x / sqrt(mean(x^2) + epsilon), with the mean over the dims from axis on, which are the dims "
           "of scale.",
       .inputs = {{"x", kReals}, "scale"},
       .attributes = {first_axis_attribute(), {"epsilon", AttrKind::kFloat, 1e-5, "added to the mean square"}},
       .rule = over_last_dims,
       .continuous = true},
      {.name = "instance_norm",
       .documentation = "scale[c] * (x - mean) / sqrt(variance + epsilon) + bias[c] for x [N, C, ...], over each map.",
       .inputs = {{"x", kReals}, "scale", "bias"},
       .attributes = {epsilon_attribute()},
       .rule = instance_norm,
       .scheme = as_first},
      {.name = "group_norm",
       .documentation =
           "scale[c] * (x - mean) / sqrt(variance + epsilon) + bias[c] for x [N, C, ...], over the maps of C / groups "
           "channels.",
       .inputs = {{"x", kReals}, "scale", "bias"},
       .attributes = {{"groups", AttrKind::kInt, std::nullopt, "number of groups of channels"}, epsilon_attribute()},
       .rule = group_norm,
       .scheme = as_first,
       .samples = SampleArguments::images(2)},
      {.name = "lp_normalize",
       .documentation = "x divided by its norm along axis; 0 where the norm is 0.",
       .inputs = {{"x", kReals}},
       .attributes = {{"axis", AttrKind::kInt, int64_t{-1}, "axis of the norm"},
                      {"p", AttrKind::kInt, int64_t{2}, "1: sum of |x|, 2: root of the sum of x^2"}},
       .rule = lp_normalize},
      {.name = "local_response_norm",
       .documentation =
           "x / (bias + alpha / size * s)^beta for x [N, C, ...], where s is the sum of x^2 over the `size` nearest "
           "channels.",
       .inputs = {{"x", kReals}},
       .attributes = {{"size", AttrKind::kInt, std::nullopt,
                       "number of summed channels: (size - 1) / 2 before, size / 2 after"},
                      {"alpha", AttrKind::kFloat, 1e-4, "weight of the sum"},
                      {"beta", AttrKind::kFloat, 0.75, "exponent"},
                      {"bias", AttrKind::kFloat, 1.0, "added to the sum"}},
       .rule = local_response_norm},
  };
}

}  // namespace tenon::compiler
