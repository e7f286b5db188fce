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
Operator windows(std::string_view name, std::string documentation, DTypes dtypes, std::vector<AttrSpec> more = {}) {
  std::vector<AttrSpec> specs{{"kernel", AttrKind::kInts, std::nullopt, "size of the window, one per dim"},
                              strides_over(rank),
                              padding_over(rank),
                              dilation_over(rank),
                              {"ceil", AttrKind::kInt, int64_t{0}, "1: the last window may extend beyond the end"}};
  specs.insert(specs.end(), more.begin(), more.end());
  static constexpr std::string_view kShapes[] = {"[N, C, W].", "[N, C, H, W].", "[N, C, D, H, W]."};
  return {fmt::format("{}{}d", name, rank),
          fmt::format("{} over windows of x {}", documentation, kShapes[rank - 1]),
          {{"x", dtypes}},
          std::move(specs),
          pool<rank>,
          OpPattern::kReduction,
          may_have_small_map};
}

template <int rank>
Operator max_pool() {
  return windows<rank>("max_pool", "Maximum, without the padding,", kNumericTypes);
}
template <int rank>
Operator avg_pool() {
  return windows<rank>(
      "avg_pool", "Average", kReals,
      {{"count_include_pad", AttrKind::kInt, int64_t{0}, "1: padding counts as zeros in the average"}});
}
template <int rank>
Operator lp_pool() {
  return windows<rank>("lp_pool", "p-th root of the sum of |x|^p", kReals, {power_attribute()});
}

}  // namespace

std::vector<Operator> pool_operators() {
  const AttrSpec size{"size", AttrKind::kInts, std::nullopt, "size of each spatial dim of the result"};
  return {
      continuous(max_pool<1>(), SampleArguments::images(1)),
      continuous(max_pool<2>(), SampleArguments::images(2)),
      continuous(max_pool<3>(), SampleArguments::images(3)),
      continuous(avg_pool<1>(), SampleArguments::images(1)),
      continuous(avg_pool<2>(), SampleArguments::images(2)),
      continuous(avg_pool<3>(), SampleArguments::images(3)),
      sampled(lp_pool<1>(), SampleArguments::images(1)),
      sampled(lp_pool<2>(), SampleArguments::images(2)),
      sampled(lp_pool<3>(), SampleArguments::images(3)),
      continuous({"global_avg_pool",
                  "Average of each map of x [N, C, ...]: [N, C, 1, ...].",
                  {{"x", kReals}},
                  {},
                  global,
                  OpPattern::kReduction},
                 SampleArguments::images(2)),
      continuous({"global_max_pool",
                  "Maximum of each map of x [N, C, ...]: [N, C, 1, ...].",
                  {{"x", kNumericTypes}},
                  {},
                  global,
                  OpPattern::kReduction},
                 SampleArguments::images(2)),
      sampled({"global_lp_pool",
               "p-th root of the sum of |x|^p of each map of x [N, C, ...]: [N, C, 1, ...].",
               {{"x", kReals}},
               {power_attribute()},
               global,
               OpPattern::kReduction},
              SampleArguments::images(2)),
      sampled({"global_sum_pool",
               "Sum of each map of x [N, C, H, W], i8 accumulated in wrapping i32: [N, C, 1, 1].",
               {{"x", {DType::kI8}}},
               {},
               global_sum_pool,
               OpPattern::kReduction,
               may_have_small_map},
              SampleArguments::images(2)),
      continuous({"adaptive_avg_pool",
                  "Averages of x [N, C, ...] over n windows per dim, where window i of a dim of size s extends from "
                  "floor(i * s / n) to ceil((i + 1) * s / n).",
                  {{"x", kReals}},
                  {size},
                  adaptive,
                  OpPattern::kReduction,
                  may_have_small_map},
                 SampleArguments::images(2)),
      continuous({"adaptive_max_pool",
                  "Maxima of x [N, C, ...] over the windows of adaptive_avg_pool.",
                  {{"x", kNumericTypes}},
                  {size},
                  adaptive,
                  OpPattern::kReduction,
                  may_have_small_map},
                 SampleArguments::images(2)),
  };
}

}  // namespace tenon::compiler
