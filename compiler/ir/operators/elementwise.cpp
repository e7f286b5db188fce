// Operators that compute each element from the elements at its place.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

Expected<Type> same(const RuleInput& in) { return in.args[0]; }

Expected<Type> float_only(const RuleInput& in) {
  TENON_TRY(check_dtype(in, 0, "x", {DType::kF32}));
  return in.args[0];
}

Expected<Type> rectify(const RuleInput& in) {
  TENON_TRY(check_dtype(in, 0, "x", {DType::kF32, DType::kI32, DType::kI8}));
  return in.args[0];
}

Expected<Type> clip(const RuleInput& in) {
  TENON_TRY(check_dtype(in, 0, "x", {DType::kF32, DType::kI32, DType::kI8}));
  const double lo = float_attr(in.attrs, "min"), hi = float_attr(in.attrs, "max");
  if (lo > hi) return error(fmt::format("min {} is above max {}", lo, hi));
  return in.args[0];
}

Expected<Type> binary(const RuleInput& in) {
  TENON_TRY(check_dtype(in, 0, "a", {DType::kF32, DType::kI32, DType::kI64, DType::kI8}));
  if (in.arg(0).dtype != in.arg(1).dtype) {
    return error(fmt::format("both must have one dtype: {}", describe(in, {"a", "b"})), "", "insert a cast");
  }
  auto dims = broadcast(in, in.arg(0).dims, in.arg(1).dims);
  if (!dims) return forward_error(dims);
  return in.context.tensor(std::move(*dims), in.arg(0).dtype);
}

Expected<Type> bias_add(const RuleInput& in) {
  TENON_TRY(check_dtype(in, 0, "x", {DType::kF32, DType::kI32}));
  const auto axis = axis_of(in, "axis", in.arg(0).rank());
  if (!axis) return std::unexpected(axis.error());
  if (Status status = check_vector(in, 1, "b", in.arg(0).dtype, in.arg(0).dims[*axis]); !status) {
    return error(fmt::format("{}: {}, axis {}", status.error().what, describe(in, {"x", "b"}), *axis));
  }
  return in.args[0];
}

Expected<Type> batch_norm(const RuleInput& in) {
  TENON_TRY(check_dtype(in, 0, "x", {DType::kF32}));
  if (in.arg(0).rank() < 2) return error(fmt::format("x must have at least 2 dims: {}", describe(in, {"x"})));
  const char* names[] = {"x", "gamma", "beta", "mean", "variance"};
  for (size_t i = 1; i < 5; ++i) TENON_TRY(check_vector(in, i, names[i], DType::kF32, in.arg(0).dims[1]));
  if (float_attr(in.attrs, "epsilon") < 0) {
    return error(fmt::format("epsilon must not be negative, found {}", float_attr(in.attrs, "epsilon")));
  }
  return in.args[0];
}

Expected<Type> cast(const RuleInput& in) {
  auto dtype = runtime::parse_dtype(string_attr(in.attrs, "dtype"));
  if (!dtype) return forward_error(dtype);
  return in.context.tensor(in.arg(0).dims, *dtype);
}

}  // namespace

std::vector<Operator> elementwise_operators() {
  return {
      {"identity", "x.", {"x"}, {}, same, Pattern::kElementwise},
      {"relu", "max(x, 0).", {"x"}, {}, rectify, Pattern::kElementwise},
      {"clip",
       "min(max(x, min), max).",
       {"x"},
       {{"min", AttrKind::kFloat, std::nullopt, "lower bound"}, {"max", AttrKind::kFloat, std::nullopt, "upper bound"}},
       clip,
       Pattern::kElementwise},
      {"sigmoid", "1 / (1 + exp(-x)).", {"x"}, {}, float_only, Pattern::kElementwise},
      {"tanh", "Hyperbolic tangent.", {"x"}, {}, float_only, Pattern::kElementwise},
      {"add", "a + b with broadcasting; integers wrap.", {"a", "b"}, {}, binary, Pattern::kBroadcast},
      {"subtract", "a - b with broadcasting; integers wrap.", {"a", "b"}, {}, binary, Pattern::kBroadcast},
      {"multiply", "a * b with broadcasting; integers wrap.", {"a", "b"}, {}, binary, Pattern::kBroadcast},
      {"divide",
       "a / b with broadcasting; integers truncate, and division by zero is an error.",
       {"a", "b"},
       {},
       binary,
       Pattern::kBroadcast},
      {"bias_add",
       "x plus b[c], where c is the index along axis; i32 wraps.",
       {"x", "b"},
       {{"axis", AttrKind::kInt, int64_t{1}, "axis of the channels"}},
       bias_add,
       Pattern::kBroadcast},
      {"batch_norm",
       "gamma * (x - mean) / sqrt(variance + epsilon) + beta per channel of axis 1.",
       {"x", "gamma", "beta", "mean", "variance"},
       {{"epsilon", AttrKind::kFloat, 1e-5, "added to the variance"}},
       batch_norm,
       Pattern::kBroadcast},
      {"cast",
       "x in another dtype: floats truncate to integers and saturate, integers wrap, bool is x != 0.",
       {"x"},
       {{"dtype", AttrKind::kString, std::nullopt, "the result's dtype, as i32"}},
       cast,
       Pattern::kElementwise},
  };
}

}  // namespace tenon::compiler
