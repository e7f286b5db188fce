// Reductions over windows, maps and axes.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

Expected<Type> pool(const RuleInput& in, std::initializer_list<DType> dtypes) {
  TENON_TRY(check_rank(in, 0, "x", 4));
  TENON_TRY(check_dtype(in, 0, "x", dtypes));
  TENON_TRY(check_ints(in, "kernel", 2, 1, 1 << 20));
  TENON_TRY(check_int(in, "ceil", 0, 1));
  const auto& kernel = ints_attr(in.attrs, "kernel");
  const auto& padding = ints_attr(in.attrs, "padding");
  const auto out = windows_2d(in, kernel[0], kernel[1], int_attr(in.attrs, "ceil") == 1);
  if (!out) return error(out.error().what + ": " + describe(in, {"x"}), "", out.error().help);
  // A window of nothing but padding has no value.
  if (padding[0] >= kernel[0] || padding[2] >= kernel[0] || padding[1] >= kernel[1] || padding[3] >= kernel[1]) {
    return error(fmt::format("padding [{}] must be smaller than the kernel [{}]", fmt::join(padding, ", "),
                             fmt::join(kernel, ", ")));
  }
  return in.context.tensor(Dims{in.arg(0).dims[0], in.arg(0).dims[1], out->first, out->second}, in.arg(0).dtype);
}

Expected<Type> max_pool2d(const RuleInput& in) { return pool(in, {DType::kF32, DType::kI8}); }
Expected<Type> avg_pool2d(const RuleInput& in) {
  TENON_TRY(check_int(in, "count_include_pad", 0, 1));
  return pool(in, {DType::kF32});
}

Expected<Type> global(const RuleInput& in, DType from, DType to) {
  TENON_TRY(check_rank(in, 0, "x", 4));
  TENON_TRY(check_dtype(in, 0, "x", {from}));
  const Dim one = in.context.dim(1);
  return in.context.tensor(Dims{in.arg(0).dims[0], in.arg(0).dims[1], one, one}, to);
}
Expected<Type> global_avg_pool(const RuleInput& in) { return global(in, DType::kF32, DType::kF32); }
Expected<Type> global_sum_pool(const RuleInput& in) { return global(in, DType::kI8, DType::kI32); }

Expected<Type> softmax(const RuleInput& in) {
  TENON_TRY(check_dtype(in, 0, "x", {DType::kF32}));
  TENON_TRY(axis_of(in, "axis", in.arg(0).rank()));
  return in.args[0];
}

std::vector<AttrSpec> pool_attributes(bool average) {
  std::vector<AttrSpec> specs{{"kernel", AttrKind::kInts, std::nullopt, "size of the window, [y, x]"},
                              kStrides,
                              kPadding,
                              {"ceil", AttrKind::kInt, int64_t{0}, "1: a last window may hang over the end"}};
  if (average) {
    specs.push_back({"count_include_pad", AttrKind::kInt, int64_t{0}, "1: padding counts as zeros in the average"});
  } else {
    specs.push_back({"dilation", AttrKind::kInts, std::vector<int64_t>{1, 1}, "distance of the taps, [y, x]"});
  }
  return specs;
}

}  // namespace

std::vector<Operator> pool_operators() {
  return {
      {"max_pool2d",
       "Maximum over windows of x [N, C, H, W]; padding never wins.",
       {"x"},
       pool_attributes(false),
       max_pool2d,
       Pattern::kReduction},
      {"avg_pool2d",
       "Average over windows of x [N, C, H, W].",
       {"x"},
       pool_attributes(true),
       avg_pool2d,
       Pattern::kReduction},
      {"global_avg_pool",
       "Average of each map of x [N, C, H, W]: [N, C, 1, 1].",
       {"x"},
       {},
       global_avg_pool,
       Pattern::kReduction},
      {"global_sum_pool",
       "Sum of each map of x [N, C, H, W], i8 into wrapping i32: [N, C, 1, 1].",
       {"x"},
       {},
       global_sum_pool,
       Pattern::kReduction},
      {"softmax",
       "exp(x - max) / sum of that, along axis.",
       {"x"},
       {{"axis", AttrKind::kInt, int64_t{-1}, "axis that sums to 1"}},
       softmax,
       Pattern::kOpaque},
  };
}

}  // namespace tenon::compiler
