// Reductions over windows and maps.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

using runtime::DTypes, runtime::kNumericTypes, runtime::kReals;

template <int rank>
Expected<Type> pool(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "x", rank + 2));
  TENON_TRY(check_ints(in, "kernel", rank, 1, kMaxWindow));
  TENON_TRY(check_int(in, "ceil", 0, 1));
  if (in.attrs.contains("count_include_pad")) TENON_TRY(check_int(in, "count_include_pad", 0, 1));
  if (in.attrs.contains("p")) TENON_TRY(check_int(in, "p", 1, 64));
  const auto& kernel = ints_attr(in.attrs, "kernel");
  const auto out = windows_over(in, kernel, int_attr(in.attrs, "ceil") == 1);
  if (!out) return error(out.error().what + ": " + describe(in, {"x"}), "", out.error().help);
  // A window that contains only padding has no value.
  const auto& padding = ints_attr(in.attrs, "padding");
  for (int i = 0; i < rank; ++i) {
    if (padding[i] < kernel[i] && padding[rank + i] < kernel[i]) continue;
    return error(fmt::format("padding [{}] must be smaller than the kernel [{}]", fmt::join(padding, ", "),
                             fmt::join(kernel, ", ")));
  }
  Dims dims{in.arg(0).dims[0], in.arg(0).dims[1]};
  dims.insert(dims.end(), out->begin(), out->end());
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

Status check_maps(const RuleInput& in) {
  if (in.arg(0).rank() >= 3 && in.arg(0).rank() <= 5) return {};
  return error(fmt::format("x must have 3 to 5 dims, found {}", in.context.str(in.args[0])));
}

Expected<Type> global(const RuleInput& in) {
  TENON_TRY(check_maps(in));
  if (in.attrs.contains("p")) TENON_TRY(check_int(in, "p", 1, 64));
  Dims dims = in.arg(0).dims;
  std::fill(dims.begin() + 2, dims.end(), in.context.dim(1));
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

Expected<Type> global_sum_pool(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "x", 4));
  const Dim unit = in.context.dim(1);
  return in.context.tensor(Dims{in.arg(0).dims[0], in.arg(0).dims[1], unit, unit}, DType::kI32);
}

Expected<Type> adaptive(const RuleInput& in) {
  TENON_TRY(check_maps(in));
  Dims dims = in.arg(0).dims;
  TENON_TRY(check_ints(in, "size", dims.size() - 2, 1, kMaxWindow));
  for (size_t i = 2; i < dims.size(); ++i) {
    if (dims[i].constant() == 0) return error(fmt::format("the map is empty: {}", describe(in, {"x"})));
    dims[i] = in.context.dim(ints_attr(in.attrs, "size")[i - 2]);
  }
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

AttrSpec power_attribute() { return {"p", AttrKind::kInt, int64_t{2}, "the exponent, 1 .. 64"}; }

template <int rank>
Operator windows(Operator op, std::string_view what) {
  static constexpr std::string_view kShapes[] = {"[N, C, W].", "[N, C, H, W].", "[N, C, D, H, W]."};
  op.documentation = fmt::format("{} over windows of x {}", what, kShapes[rank - 1]);
  const AttrSpec specs[] = {{"kernel", AttrKind::kInts, std::nullopt, "size of the window, one per dim"},
                            strides_over(rank),
                            padding_over(rank),
                            dilation_over(rank),
                            {"ceil", AttrKind::kInt, int64_t{0}, "1: the last window may extend beyond the end"}};
  op.attributes.insert(op.attributes.begin(), std::begin(specs), std::end(specs));
  if (op.inputs.empty()) op.inputs = {{"x", kReals}};
  op.rule = pool<rank>;
  op.pattern = OpPattern::kReduction;
  op.may_fail = may_have_small_map;
  op.samples = SampleArguments::images(rank);
  return op;
}

template <int rank>
Operator max_pool(Operator op) {
  op.inputs = {{"x", kNumericTypes}};
  op.continuous = true;
  op.elements = Elements::kSelected;
  return windows<rank>(std::move(op), "Maximum, without the padding, NaN where an element is NaN,");
}
template <int rank>
Operator avg_pool(Operator op) {
  op.attributes = {{"count_include_pad", AttrKind::kInt, int64_t{0}, "1: padding counts as zeros in the average"}};
  op.continuous = true;
  return windows<rank>(std::move(op), "Average");
}
template <int rank>
Operator lp_pool(Operator op) {
  op.attributes = {power_attribute()};
  return windows<rank>(std::move(op), "p-th root of the sum of |x|^p");
}

}  // namespace

std::vector<Operator> pool_operators() {
  const AttrSpec size{"size", AttrKind::kInts, std::nullopt, "size of each spatial dim of the result"};
  return {
      max_pool<1>({.name = "max_pool1d"}),
      max_pool<2>({.name = "max_pool2d"}),
      max_pool<3>({.name = "max_pool3d"}),
      avg_pool<1>({.name = "avg_pool1d"}),
      avg_pool<2>({.name = "avg_pool2d"}),
      avg_pool<3>({.name = "avg_pool3d"}),
      lp_pool<1>({.name = "lp_pool1d"}),
      lp_pool<2>({.name = "lp_pool2d"}),
      lp_pool<3>({.name = "lp_pool3d"}),
      {.name = "global_avg_pool",
       .documentation = "Average of each map of x [N, C, ...]: [N, C, 1, ...].",
       .inputs = {{"x", kReals}},
       .rule = global,
       .pattern = OpPattern::kReduction,
       .continuous = true,
       .samples = SampleArguments::images(2)},
      {.name = "global_max_pool",
       .documentation = "Maximum of each map of x [N, C, ...]: [N, C, 1, ...]; NaN where an element is NaN.",
       .inputs = {{"x", kNumericTypes}},
       .rule = global,
       .pattern = OpPattern::kReduction,
       .continuous = true,
       .samples = SampleArguments::images(2),
       .elements = Elements::kSelected},
      {.name = "global_lp_pool",
       .documentation = "p-th root of the sum of |x|^p of each map of x [N, C, ...]: [N, C, 1, ...].",
       .inputs = {{"x", kReals}},
       .attributes = {power_attribute()},
       .rule = global,
       .pattern = OpPattern::kReduction,
       .samples = SampleArguments::images(2)},
      {.name = "global_sum_pool",
       .documentation = "Sum of each map of x [N, C, H, W], i8 accumulated in wrapping i32: [N, C, 1, 1].",
       .inputs = {{"x", {DType::kI8}}},
       .rule = global_sum_pool,
       .pattern = OpPattern::kReduction,
       .may_fail = may_have_small_map,
       .samples = SampleArguments::images(2)},
      {.name = "adaptive_avg_pool",
       .documentation =
           "Averages of x [N, C, ...] over n windows per dim, where window i of a dim of size s extends from "
           "floor(i * s / n) to ceil((i + 1) * s / n).",
       .inputs = {{"x", kReals}},
       .attributes = {size},
       .rule = adaptive,
       .pattern = OpPattern::kReduction,
       .may_fail = may_have_small_map,
       .continuous = true,
       .samples = SampleArguments::images(2)},
      {.name = "adaptive_max_pool",
       .documentation = "Maxima of x [N, C, ...] over the windows of adaptive_avg_pool; NaN where an element is NaN.",
       .inputs = {{"x", kNumericTypes}},
       .attributes = {size},
       .rule = adaptive,
       .pattern = OpPattern::kReduction,
       .may_fail = may_have_small_map,
       .continuous = true,
       .samples = SampleArguments::images(2),
       .elements = Elements::kSelected},
  };
}

}  // namespace tenon::compiler
