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

Operator reduction(Operator op) {
  if (op.inputs.empty()) op.inputs = {{"x", kReals}};
  op.attributes = {{"axes", AttrKind::kInts, std::vector<int64_t>{}, "axes to reduce; none: all", true},
                   keep_attribute()};
  op.rule = reduce;
  op.pattern = OpPattern::kReduction;
  return op;
}

Operator best(Operator op) {
  op.inputs = {{"x", kNumericTypes}};
  op.attributes = {{"axis", AttrKind::kInt, std::nullopt, "axis of the search"},
                   keep_attribute(),
                   {"select_last", AttrKind::kInt, int64_t{0}, "1: the last of several equal elements, not the first"}};
  op.rule = index_of_best;
  op.pattern = OpPattern::kReduction;
  op.may_fail = may_be_small;
  return op;
}

Operator softmax(Operator op) {
  op.inputs = {{"x", kReals}};
  op.attributes = {{"axis", AttrKind::kInt, int64_t{-1}, "axis that sums to 1"}};
  op.rule = along_axis;
  op.scheme = as_first;
  return op;
}

Operator cumulation(Operator op) {
  op.inputs = {{"x", kNumericTypes}};
  op.attributes = {{"axis", AttrKind::kInt, std::nullopt, "axis of the accumulation", true},
                   {"exclusive", AttrKind::kInt, int64_t{0}, "1: without the element itself"},
                   {"reverse", AttrKind::kInt, int64_t{0}, "1: from the end"}};
  op.rule = cumulate;
  return op;
}

}  // namespace

std::vector<Operator> reduce_operators() {
  return {
      reduction({.name = "sum",
                 .documentation = "Sum of x over the axes; integers wrap.",
                 .inputs = {{"x", kNumericTypes}},
                 .continuous = true}),
      reduction({.name = "mean",
                 .documentation = "Mean of x over the axes; NaN where they have no element.",
                 .continuous = true}),
      reduction({.name = "prod",
                 .documentation = "Product of x over the axes; integers wrap.",
                 .inputs = {{"x", kNumericTypes}}}),
      reduction(
          {.name = "max",
           .documentation =
               "Maximum of x over the axes; the dtype's lowest value for no element, NaN where an element is NaN.",
           .inputs = {{"x", kNumericTypes}},
           .continuous = true}),
      reduction(
          {.name = "min",
           .documentation =
               "Minimum of x over the axes; the dtype's highest value for no element, NaN where an element is NaN.",
           .inputs = {{"x", kNumericTypes}},
           .continuous = true}),
      reduction({.name = "all",
                 .documentation = "Whether all elements of x over the axes are true.",
                 .inputs = {{"x", runtime::kBoolean}}}),
      reduction({.name = "any",
                 .documentation = "Whether any element of x over the axes is true.",
                 .inputs = {{"x", runtime::kBoolean}}}),
      reduction({.name = "sum_square",
                 .documentation = "Sum of x^2 over the axes; integers wrap.",
                 .inputs = {{"x", kNumericTypes}},
                 .continuous = true}),
      reduction({.name = "norm_l1", .documentation = "Sum of |x| over the axes.", .continuous = true}),
      reduction({.name = "norm_l2", .documentation = "Square root of the sum of x^2 over the axes."}),
      reduction({.name = "log_sum",
                 .documentation = "Logarithm of the sum of x over the axes.",
                 .samples = SampleArguments::above_zero()}),
      reduction({.name = "log_sum_exp",
                 .documentation = "Logarithm of the sum of exp(x) over the axes, without overflow.",
                 .continuous = true}),
      best({.name = "arg_max", .documentation = "Index of the maximum along axis, i64."}),
      best({.name = "arg_min", .documentation = "Index of the minimum along axis, i64."}),
      softmax({.name = "softmax", .documentation = "exp(x - max) / sum(exp(x - max)) along axis.", .continuous = true}),
      softmax({.name = "log_softmax", .documentation = "Logarithm of softmax(x), along axis.", .continuous = true}),
      softmax({.name = "hardmax", .documentation = "1 at the first maximum along axis, else 0."}),
      cumulation({.name = "cumsum", .documentation = "Prefix sums along axis; integers wrap.", .continuous = true}),
      cumulation({.name = "cumprod", .documentation = "Prefix products along axis; integers wrap."}),
  };
}

}  // namespace tenon::compiler
