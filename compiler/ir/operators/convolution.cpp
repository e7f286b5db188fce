// Convolutions over one to three spatial dims.
#include "compiler/ir/operators/rules.h"
#include "runtime/reference/product.h"

namespace tenon::compiler {
namespace {

// The sizes of the kernel, w's dims from 2 on.
Expected<std::vector<int64_t>> kernel_sizes(const RuleInput& in) {
  std::vector<int64_t> sizes;
  for (size_t d = 2; d < in.arg(1).dims.size(); ++d) {
    const auto size = in.arg(1).dims[d].constant();
    if (!size || *size < 1 || *size > kMaxWindow) {
      return error(fmt::format("the kernel's size must be a constant of at least 1: {}", describe(in, {"x", "w"})));
    }
    sizes.push_back(*size);
  }
  return sizes;
}

template <int rank>
Expected<Type> convolution(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "x", rank + 2));
  TENON_TRY(check_rank(in, 1, "w", rank + 2));
  const Dims &x = in.arg(0).dims, &w = in.arg(1).dims;
  TENON_TRY(check_int(in, "groups", 1, kMaxWindow));
  TENON_TRY(check_int(in, "pad_value", -128, 127));
  const int64_t groups = int_attr(in.attrs, "groups");
  TENON_TRY(
      require_size(in, 0, 1, in.context.multiply(w[1], in.context.dim(groups)),
                   fmt::format("w expects {} x {} input channels, x has {}", in.context.str(w[1]),
                               groups == 1 ? "1 group" : fmt::format("{} groups", groups), in.context.str(x[1]))));
  TENON_TRY_ASSIGN(of_group, require_quotient(in, 1, 0, groups,
                                              fmt::format("{} output channels do not divide into {} groups",
                                                          in.context.str(w[0]), groups)));
  TENON_TRY_ASSIGN(kernel, kernel_sizes(in));
  const auto out = windows_over(in, *kernel, false);
  if (!out) return error(out.error().what + ": " + describe(in, {"x", "w"}), "", out.error().help);
  Dims dims{x[0], in.context.multiply(*of_group, in.context.dim(groups))};
  dims.insert(dims.end(), out->begin(), out->end());
  return in.context.tensor(std::move(dims), runtime::reference::product_dtype(in.arg(0).dtype));
}

template <int rank>
Expected<Type> transposed(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "x", rank + 2));
  TENON_TRY(check_rank(in, 1, "w", rank + 2));
  Context& context = in.context;
  const Dims &x = in.arg(0).dims, &w = in.arg(1).dims;
  TENON_TRY(check_int(in, "groups", 1, kMaxWindow));
  TENON_TRY(check_ints(in, "strides", rank, 1, kMaxWindow));
  TENON_TRY(check_ints(in, "padding", 2 * rank, 0, kMaxWindow));
  TENON_TRY(check_ints(in, "dilation", rank, 1, kMaxWindow));
  TENON_TRY(check_ints(in, "output_padding", rank, 0, kMaxWindow));
  const Dim groups = context.dim(int_attr(in.attrs, "groups"));
  // The channels of x and w are the same multiple of the groups; the group size follows from a constant, if there is
  // one.
  const std::string differ = fmt::format("x has {} channels, w expects {} in {} groups", context.str(x[1]),
                                         context.str(w[0]), context.str(groups));
  const size_t reference = x[1].constant() ? 0 : 1;
  TENON_TRY_ASSIGN(of_group,
                   require_quotient(in, reference, reference == 0 ? 1 : 0, int_attr(in.attrs, "groups"), differ));
  TENON_TRY(require_size(in, 1 - reference, reference == 0 ? 0 : 1, context.multiply(*of_group, groups), differ));
  TENON_TRY_ASSIGN(kernel, kernel_sizes(in));
  const auto &strides = ints_attr(in.attrs, "strides"), &padding = ints_attr(in.attrs, "padding"),
             &dilation = ints_attr(in.attrs, "dilation"), &more = ints_attr(in.attrs, "output_padding");
  Dims dims{x[0], context.multiply(w[1], groups)};
  for (int i = 0; i < rank; ++i) {
    const int64_t footprint = ((*kernel)[i] - 1) * dilation[i] + 1 + more[i] - padding[i] - padding[rank + i];
    const Dim steps = context.multiply(context.subtract(x[2 + i], context.dim(1)), context.dim(strides[i]));
    dims.push_back(context.add(steps, context.dim(footprint)));
    if (const auto size = dims.back().constant(); size && *size < 1) {
      return error(fmt::format("the padding removes all elements of axis {}: {}", 2 + i, describe(in, {"x", "w"})));
    }
  }
  return context.tensor(std::move(dims), in.arg(0).dtype);
}

// The scheme of convolutions: the kernel's sizes must be constants, and x has the kernel's rank.
template <int rank>
bool of_kernel(const SchemeInput& in) {
  const TensorType* w = in.args[1].tensor();
  if (w && in.args[0].unknown()) in.args[0] = of_rank(in, rank + 2, w->dtype);
  return w && std::ranges::all_of(w->dims, [](Dim dim) { return dim.constant().has_value(); });
}

template <int rank>
Operator of_maps(Operator op) {
  op.pattern = OpPattern::kAnchor;
  op.may_fail = may_have_small_map;
  op.scheme = of_kernel<rank>;
  op.samples = SampleArguments::images(rank);
  op.continuous = true;
  return op;
}

template <int rank>
Operator conv(Operator op) {
  op.documentation = "Cross-correlation of " + op.documentation +
                     " i8 accumulates in wrapping i32; the padding has the value pad_value.";
  op.inputs = {{"x", runtime::reference::kFactors}, Input::same("w")};
  op.attributes = {strides_over(rank),
                   padding_over(rank),
                   dilation_over(rank),
                   {"groups", AttrKind::kInt, int64_t{1}, "number of groups of channels"},
                   {"pad_value", AttrKind::kInt, int64_t{0}, "value of the padding (a zero point)"}};
  op.rule = convolution<rank>;
  return of_maps<rank>(std::move(op));
}

template <int rank>
Operator conv_transpose(Operator op) {
  op.documentation =
      "Each element of x adds the kernel, scaled by the element, to the result at the kernel's position: " +
      op.documentation;
  op.inputs = {{"x", runtime::kReals}, Input::same("w")};
  op.attributes = {
      strides_over(rank),
      padding_over(rank),
      dilation_over(rank),
      {"output_padding", AttrKind::kInts, std::vector<int64_t>(rank, 0), "elements added at the end of each dim"},
      {"groups", AttrKind::kInt, int64_t{1}, "number of groups of channels"}};
  op.rule = transposed<rank>;
  return of_maps<rank>(std::move(op));
}

}  // namespace

std::vector<Operator> convolution_operators() {
  return {
      conv<1>({.name = "conv1d", .documentation = "x [N, C, W] with w [O, C / groups, kw]: [N, O, W']."}),
      conv<2>({.name = "conv2d", .documentation = "x [N, C, H, W] with w [O, C / groups, kh, kw]: [N, O, H', W']."}),
      conv<3>({.name = "conv3d",
               .documentation = "x [N, C, D, H, W] with w [O, C / groups, kd, kh, kw]: [N, O, D', H', W']."}),
      conv_transpose<1>({.name = "conv1d_transpose",
                         .documentation =
                             "x [N, C, W], w [C, O / groups, kw]: [N, O, W'], W' = (W - 1) * stride + (kw - 1) * "
                             "dilation + 1 + output_padding - padding."}),
      conv_transpose<2>(
          {.name = "conv2d_transpose", .documentation = "x [N, C, H, W], w [C, O / groups, kh, kw]: [N, O, H', W']."}),
      conv_transpose<3>({.name = "conv3d_transpose",
                         .documentation = "x [N, C, D, H, W], w [C, O / groups, kd, kh, kw]: [N, O, D', H', W']."}),
  };
}

}  // namespace tenon::compiler
