// Sliding windows over the spatial dims of x [N, C, ...], which convolutions and pooling share.
#pragma once

#include <algorithm>

#include "compiler/base/dim_prover.h"
#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// The axes of a tensor [N, C, ...] of this rank with channels innermost, [N, ..., C], and of that one back.
inline std::vector<int64_t> channels_innermost(size_t rank) {
  std::vector<int64_t> axes{0};
  for (size_t d = 2; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  axes.push_back(1);
  return axes;
}
inline std::vector<int64_t> channels_second(size_t rank) {
  std::vector<int64_t> axes{0, static_cast<int64_t>(rank) - 1};
  for (size_t d = 1; d + 1 < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  return axes;
}

// The number of phases of a strided window: distinct remainders of the kernel taps' offsets by the stride.
inline int64_t num_phases(int64_t kernel, int64_t stride, int64_t dilation) {
  return dilation == 1 ? std::min(kernel, stride) : stride;
}

struct Windows {
  std::vector<Dim> kernel, in, out;  // sizes by spatial dim
  std::vector<int64_t> strides, dilation, before, after;

  size_t rank() const { return kernel.size(); }
  // Whether the strides have few phases: each phase is a copy of the input or of the code.
  bool few_phases() const {
    constexpr int64_t kMost = 32;
    for (size_t d = 0; d < rank(); ++d) {
      if (num_phases(kernel[d].constant().value_or(strides[d]), strides[d], dilation[d]) > kMost) return false;
    }
    return true;
  }
  // The index that a kernel tap of a window reads, in x padded with `before` elements.
  Dim input_index(Context& context, size_t d, Dim window, Dim kernel_index) const {
    return context.add(context.multiply(window, context.dim(strides[d])),
                       context.multiply(kernel_index, context.dim(dilation[d])));
  }
};

inline Windows read_windows(const OperatorCall& op, Dims kernel) {
  const size_t rank = kernel.size();
  const auto& padding = op.integers("padding");
  const Dims &x = op.arg(0).dims, &y = op.dims();
  return {.kernel = std::move(kernel),
          .in = Dims(x.begin() + 2, x.end()),
          .out = Dims(y.begin() + 2, y.end()),
          .strides = op.integers("strides"),
          .dilation = op.integers("dilation"),
          .before = {padding.begin(), padding.begin() + static_cast<ptrdiff_t>(rank)},
          .after = {padding.begin() + static_cast<ptrdiff_t>(rank), padding.end()}};
}

// x padded with `value` as far as windows read; computed by each reader.
inline LazyTensor padded_elements(const OperatorCall& op, const Windows& windows, const LazyTensor& x,
                                  const Expr& value) {
  Emitter& emit = op.emit;
  Context& context = op.context();
  Dims dims(x.dims.begin(), x.dims.begin() + 2);
  std::vector<bool> needs_padding(windows.rank());
  bool any_padding = false;
  for (size_t d = 0; d < windows.rank(); ++d) {
    const auto last = [&](Dim count) { return context.subtract(count, context.dim(1)); };
    const Dim footprint =
        context.add(windows.input_index(context, d, last(windows.out[d]), last(windows.kernel[d])), context.dim(1));
    const bool is_inside =
        windows.before[d] == 0 && DimProver(context).less_equal(footprint, windows.in[d]) == Answer::kYes;
    needs_padding[d] = !is_inside;
    any_padding |= !is_inside;
    dims.push_back(is_inside ? windows.in[d] : footprint);
  }
  if (!any_padding) return x;
  return emit.expression(dims, x.dtype, [=, &emit, &context, before = windows.before](const Dims& at) {
    Dims from = at;
    Expr inside;
    for (size_t d = 0; d < needs_padding.size(); ++d) {
      if (!needs_padding[d]) continue;
      from[2 + d] = context.subtract(at[2 + d], context.dim(before[d]));
      const Expr in_range = emit.inside(from[2 + d], context.dim(0), x.dims[2 + d]);
      inside = inside ? logical_and(inside, in_range) : in_range;
    }
    return select(inside, x.at(from), value);
  });
}

// The same stored, so that no kernel tap needs a bounds check.
inline LazyTensor padded(const OperatorCall& op, const Windows& windows, const LazyTensor& x, const Expr& value) {
  const LazyTensor elements = padded_elements(op, windows, x, value);
  return op.emit.stored(elements.dims == x.dims ? "x" : "padded", elements);
}

}  // namespace tenon::compiler::kernels
