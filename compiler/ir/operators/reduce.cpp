// Reductions over axes, and operators along one axis.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

using runtime::DTypes, runtime::kNumericTypes, runtime::kReals;

// The dims of x without the axes, or with 1 in place of them.
Expected<Type> reduce(const RuleInput& in) {
  TENON_TRY(check_int(in, "keep", 0, 1));
  if (in.is_computed("axes")) {
    const auto count = static_cast<int64_t>(in.computed.find("axes")->second.size());
    const int64_t rank = in.arg(0).rank(), left = count == 0 ? 0 : rank - count;
    if (left < 0) return error(fmt::format("more axes than x has: {}", describe(in, {"x"})));
    return unknown_sizes(in, int_attr(in.attrs, "keep") == 1 ? rank : left, in.arg(0).dtype);
  }
  TENON_TRY_ASSIGN(axes, axes_of(in, "axes", in.arg(0).rank()));
  const bool keep = int_attr(in.attrs, "keep") == 1;
  Dims dims;
  for (int64_t i = 0; i < in.arg(0).rank(); ++i) {
    const bool reduced = axes->empty() || std::ranges::find(*axes, i) != axes->end();
    if (!reduced) dims.push_back(in.arg(0).dims[i]);
    else if (keep) dims.push_back(in.context.dim(1));
  }
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

Expected<Type> index_of_best(const RuleInput& in) {
  TENON_TRY(check_int(in, "keep", 0, 1));
  TENON_TRY(check_int(in, "select_last", 0, 1));
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", in.arg(0).rank()));
  Dims dims = in.arg(0).dims;
  if (dims[*axis].constant() == 0) return error(fmt::format("axis {} has no element: {}", *axis, describe(in, {"x"})));
  if (int_attr(in.attrs, "keep") == 1) dims[*axis] = in.context.dim(1);
  else dims.erase(dims.begin() + *axis);
  return in.context.tensor(std::move(dims), DType::kI64);
}

Expected<Type> along_axis(const RuleInput& in) {
  if (!in.is_computed("axis")) TENON_TRY(axis_of(in, "axis", in.arg(0).rank()));
  return in.args[0];
}

Expected<Type> cumulate(const RuleInput& in) {
  TENON_TRY(check_int(in, "exclusive", 0, 1));
  TENON_TRY(check_int(in, "reverse", 0, 1));
  return along_axis(in);
}

AttrSpec keep_attribute() { return {"keep", AttrKind::kInt, int64_t{0}, "1: the axes are kept with size 1"}; }

Operator reduction(std::string name, std::string documentation, DTypes dtypes = kReals) {
  return {std::move(name),
          std::move(documentation),
          {{"x", dtypes}},
          {{"axes", AttrKind::kInts, std::vector<int64_t>{}, "axes to reduce; none: all", true}, keep_attribute()},
          reduce,
          OpPattern::kReduction};
}

Operator best(std::string name, std::string documentation) {
  return {std::move(name),
          std::move(documentation),
          {{"x", kNumericTypes}},
          {{"axis", AttrKind::kInt, std::nullopt, "axis of the search"},
           keep_attribute(),
           {"select_last", AttrKind::kInt, int64_t{0}, "1: the last of several equal elements, not the first"}},
          index_of_best,
          OpPattern::kReduction,
          may_be_small};
}

Operator softmax(std::string name, std::string documentation) {
  return {std::move(name), std::move(documentation),
          {{"x", kReals}}, {{"axis", AttrKind::kInt, int64_t{-1}, "axis that sums to 1"}},
          along_axis,      OpPattern::kOpaque,
          nullptr,         as_first};
}

Operator cumulation(std::string name, std::string documentation) {
  return {std::move(name),
          std::move(documentation),
          {{"x", kNumericTypes}},
          {{"axis", AttrKind::kInt, std::nullopt, "axis of the accumulation", true},
           {"exclusive", AttrKind::kInt, int64_t{0}, "1: without the element itself"},
           {"reverse", AttrKind::kInt, int64_t{0}, "1: from the end"}},
          cumulate,
          OpPattern::kOpaque};
}

}  // namespace

std::vector<Operator> reduce_operators() {
  return {
      continuous(reduction("sum", "Sum of x over the axes; integers wrap.", kNumericTypes)),
      continuous(reduction("mean", "Mean of x over the axes; NaN where they have no element.")),
      reduction("prod", "Product of x over the axes; integers wrap.", kNumericTypes),
      continuous(reduction(
          "max", "Maximum of x over the axes; the dtype's lowest value for no element, NaN where an element is NaN.",
          kNumericTypes)),
      continuous(reduction(
          "min", "Minimum of x over the axes; the dtype's highest value for no element, NaN where an element is NaN.",
          kNumericTypes)),
      reduction("all", "Whether all elements of x over the axes are true.", runtime::kBoolean),
      reduction("any", "Whether any element of x over the axes is true.", runtime::kBoolean),
      continuous(reduction("sum_square", "Sum of x^2 over the axes; integers wrap.", kNumericTypes)),
      continuous(reduction("norm_l1", "Sum of |x| over the axes.")),
      reduction("norm_l2", "Square root of the sum of x^2 over the axes."),
      sampled(reduction("log_sum", "Logarithm of the sum of x over the axes."), SampleArguments::above_zero()),
      continuous(reduction("log_sum_exp", "Logarithm of the sum of exp(x) over the axes, without overflow.")),
      best("arg_max", "Index of the maximum along axis, i64."),
      best("arg_min", "Index of the minimum along axis, i64."),
      continuous(softmax("softmax", "exp(x - max) / sum(exp(x - max)) along axis.")),
      continuous(softmax("log_softmax", "Logarithm of softmax(x), along axis.")),
      softmax("hardmax", "1 at the first maximum along axis, else 0."),
      continuous(cumulation("cumsum", "Prefix sums along axis; integers wrap.")),
      cumulation("cumprod", "Prefix products along axis; integers wrap."),
  };
}

}  // namespace tenon::compiler
