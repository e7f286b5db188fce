// Convolution, dense, matrix product.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

constexpr int64_t kMax = 1 << 20;

// Both operands f32, or both i8; the result's dtype.
Expected<DType> product_dtype(const RuleInput& in) {
  const DType a = in.arg(0).dtype, b = in.arg(1).dtype;
  if (a == DType::kF32 && b == DType::kF32) return DType::kF32;
  if (a == DType::kI8 && b == DType::kI8) return DType::kI32;
  return error(fmt::format("x and w must both be f32 or both i8, found {} and {}", runtime::name(a), runtime::name(b)));
}

Expected<Type> conv2d(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "x", 4));
  TENON_TRY(check_rank(in, 1, "w", 4));
  const auto dtype = product_dtype(in);
  if (!dtype) return std::unexpected(dtype.error());
  const Dims &x = in.arg(0).dims, &w = in.arg(1).dims;
  TENON_TRY(check_int(in, "groups", 1, kMax));
  TENON_TRY(check_int(in, "pad_value", -128, 127));
  const int64_t groups = int_attr(in.attrs, "groups");
  if (in.context.multiply(w[1], in.context.dim(groups)) != x[1]) {
    return error(fmt::format("w takes {} x {} input channels, x has {}: {}", in.context.str(w[1]),
                             groups == 1 ? "1 group" : fmt::format("{} groups", groups), in.context.str(x[1]),
                             describe(in, {"x", "w"})));
  }
  if (!in.context.divide(w[0], in.context.dim(groups))) {
    return error(fmt::format("{} output channels do not divide into {} groups: {}", in.context.str(w[0]), groups,
                             describe(in, {"x", "w"})));
  }
  const auto kernel_h = w[2].constant(), kernel_w = w[3].constant();
  if (!kernel_h || !kernel_w || *kernel_h < 1 || *kernel_w < 1 || *kernel_h > kMax || *kernel_w > kMax) {
    return error(fmt::format("the kernel's size must be known and at least 1: {}", describe(in, {"x", "w"})));
  }
  const auto out = windows_2d(in, *kernel_h, *kernel_w, false);
  if (!out) return error(out.error().what + ": " + describe(in, {"x", "w"}), "", out.error().help);
  return in.context.tensor(Dims{x[0], w[0], out->first, out->second}, *dtype);
}

Expected<Type> dense(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "x", 2));
  TENON_TRY(check_rank(in, 1, "w", 2));
  const auto dtype = product_dtype(in);
  if (!dtype) return std::unexpected(dtype.error());
  if (in.arg(0).dims[1] != in.arg(1).dims[1]) {
    return error(fmt::format("x has {} features, w takes {}: {}", in.context.str(in.arg(0).dims[1]),
                             in.context.str(in.arg(1).dims[1]), describe(in, {"x", "w"})));
  }
  return in.context.tensor(Dims{in.arg(0).dims[0], in.arg(1).dims[0]}, *dtype);
}

Expected<Type> matmul(const RuleInput& in) {
  const auto dtype = product_dtype(in);
  if (!dtype) return std::unexpected(dtype.error());
  const Dims &a = in.arg(0).dims, &b = in.arg(1).dims;
  if (a.size() < 2 || b.size() < 2) {
    return error(fmt::format("both must have at least 2 dims: {}", describe(in, {"a", "b"})));
  }
  if (a.back() != b[b.size() - 2]) {
    return error(fmt::format("a has {} columns, b has {} rows: {}", in.context.str(a.back()),
                             in.context.str(b[b.size() - 2]), describe(in, {"a", "b"})));
  }
  auto dims = broadcast(in, Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!dims) return forward_error(dims);
  dims->push_back(a[a.size() - 2]);
  dims->push_back(b.back());
  return in.context.tensor(std::move(*dims), *dtype);
}

}  // namespace

std::vector<Operator> contraction_operators() {
  return {
      {"conv2d",
       "Cross-correlation of x [N, C, H, W] with w [O, C / groups, kh, kw]: [N, O, H', W']. f32, or i8 x i8 into "
       "wrapping i32; elements of the pad are pad_value (a zero point).",
       {"x", "w"},
       {kStrides,
        kPadding,
        {"dilation", AttrKind::kInts, std::vector<int64_t>{1, 1}, "distance of the taps, [y, x]"},
        {"groups", AttrKind::kInt, int64_t{1}, "parts that the channels are cut into"},
        {"pad_value", AttrKind::kInt, int64_t{0}, "value of the padding"}},
       conv2d,
       Pattern::kAnchor},
      {"dense",
       "x [N, K] times the transpose of w [M, K]: [N, M]. f32, or i8 x i8 into wrapping i32.",
       {"x", "w"},
       {},
       dense,
       Pattern::kAnchor},
      {"matmul",
       "Matrix product of the last two dims, the others broadcast. f32, or i8 x i8 into wrapping i32.",
       {"a", "b"},
       {},
       matmul,
       Pattern::kAnchor},
  };
}

}  // namespace tenon::compiler
