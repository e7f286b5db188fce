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

struct Windows {
  std::vector<Dim> kernel, in, out;  // sizes by spatial dim
  std::vector<int64_t> strides, dilation, before, after;

  size_t rank() const { return kernel.size(); }
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

// A tensor of the sizes `dims` that is x from the spatial indices `offsets` on, and `value` elsewhere; computed by each
// reader. Dims of which `is_padded` is false have the sizes of x.
inline LazyTensor surrounded(Emitter& emit, const LazyTensor& x, const Dims& dims, const std::vector<int64_t>& offsets,
                             const std::vector<bool>& is_padded, const Expr& value) {
  return emit.expression(dims, x.dtype, [=, &emit](const Dims& at) {
    Context& context = emit.context();
    Dims from = at;
    Expr inside;
    for (size_t d = 0; d < offsets.size(); ++d) {
      if (!is_padded[d]) continue;
      from[2 + d] = context.subtract(at[2 + d], context.dim(offsets[d]));
      const Expr in_range = emit.inside(from[2 + d], context.dim(0), x.dims[2 + d]);
      inside = inside ? logical_and(inside, in_range) : in_range;
    }
    return select(inside, x.at(from), value);
  });
}

// x padded with `value` as far as windows read; computed by each reader.
inline LazyTensor padded_elements(const OperatorCall& op, const Windows& windows, const LazyTensor& x,
                                  const Expr& value) {
  Context& context = op.context();
  Dims dims(x.dims.begin(), x.dims.begin() + 2);
  std::vector<bool> is_padded;
  for (size_t d = 0; d < windows.rank(); ++d) {
    const auto last = [&](Dim count) { return context.subtract(count, context.dim(1)); };
    const Dim footprint =
        context.add(windows.input_index(context, d, last(windows.out[d]), last(windows.kernel[d])), context.dim(1));
    const bool is_inside =
        windows.before[d] == 0 && DimProver(context).less_equal(footprint, windows.in[d]) == Answer::kYes;
    is_padded.push_back(!is_inside);
    dims.push_back(is_inside ? windows.in[d] : footprint);
  }
  if (std::ranges::count(is_padded, true) == 0) return x;
  return surrounded(op.emit, x, dims, windows.before, is_padded, value);
}

// The same stored, so that no kernel tap needs a bounds check.
inline LazyTensor padded(const OperatorCall& op, const Windows& windows, const LazyTensor& x, const Expr& value) {
  const LazyTensor elements = padded_elements(op, windows, x, value);
  return op.emit.stored(elements.dims == x.dims ? "x" : "padded", elements);
}

}  // namespace tenon::compiler::kernels
