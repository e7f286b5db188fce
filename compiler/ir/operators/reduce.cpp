// Reductions over axes, and what runs along one axis.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

using runtime::DTypes, runtime::kNumbers, runtime::kReals;

// The dims without the axes, or with 1 in their place.
Expected<Type> reduce(const RuleInput& in) {
  TENON_TRY(check_int(in, "keep", 0, 1));
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
  TENON_TRY(axis_of(in, "axis", in.arg(0).rank()));
  return in.args[0];
}

Expected<Type> cumulate(const RuleInput& in) {
  TENON_TRY(check_int(in, "exclusive", 0, 1));
  TENON_TRY(check_int(in, "reverse", 0, 1));
  return along_axis(in);
}

AttrSpec keep_attribute() { return {"keep", AttrKind::kInt, int64_t{0}, "1: the axes stay, with size 1"}; }

Operator reduction(std::string name, std::string documentation, DTypes dtypes = kReals) {
  return {std::move(name),
          std::move(documentation),
          {{"x", dtypes}},
          {{"axes", AttrKind::kInts, std::vector<int64_t>{}, "axes to reduce; none: all"}, keep_attribute()},
          reduce,
          OpPattern::kReduction};
}

Operator best(std::string name, std::string documentation) {
  return {std::move(name),
          std::move(documentation),
          {{"x", kNumbers}},
          {{"axis", AttrKind::kInt, std::nullopt, "axis along which it is looked for"},
           keep_attribute(),
           {"select_last", AttrKind::kInt, int64_t{0}, "1: the last of several equal ones, not the first"}},
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
          {{"x", kNumbers}},
          {{"axis", AttrKind::kInt, std::nullopt, "axis along which they are taken"},
           {"exclusive", AttrKind::kInt, int64_t{0}, "1: without the element itself"},
           {"reverse", AttrKind::kInt, int64_t{0}, "1: from the end"}},
          cumulate,
          OpPattern::kOpaque};
}

}  // namespace

std::vector<Operator> reduce_operators() {
  return {
      reduction("sum", "Sum of x over the axes; integers wrap.", kNumbers),
      reduction("mean", "Mean of x over the axes; not a number where they have no element."),
      reduction("prod", "Product of x over the axes; integers wrap.", kNumbers),
      reduction("max", "Maximum of x over the axes; of no element the dtype's lowest, not a number where one is.",
                kNumbers),
      reduction("min", "Minimum of x over the axes; of no element the dtype's highest, not a number where one is.",
                kNumbers),
      reduction("all", "Whether all of x over the axes are true.", runtime::kBoolean),
      reduction("any", "Whether one of x over the axes is true.", runtime::kBoolean),
      reduction("sum_square", "Sum of x^2 over the axes; integers wrap.", kNumbers),
      reduction("norm_l1", "Sum of |x| over the axes."),
      reduction("norm_l2", "Square root of the sum of x^2 over the axes."),
      reduction("log_sum", "Logarithm of the sum of x over the axes."),
      reduction("log_sum_exp", "Logarithm of the sum of exp(x) over the axes, without overflow."),
      best("arg_max", "Index of the maximum along axis, i64."),
      best("arg_min", "Index of the minimum along axis, i64."),
      softmax("softmax", "exp(x - max) / sum of that, along axis."),
      softmax("log_softmax", "Logarithm of softmax(x), along axis."),
      softmax("hardmax", "1 at the first maximum along axis, else 0."),
      cumulation("cumsum", "Sums of the elements up to each along axis; integers wrap."),
      cumulation("cumprod", "Products of the elements up to each along axis; integers wrap."),
  };
}

}  // namespace tenon::compiler
