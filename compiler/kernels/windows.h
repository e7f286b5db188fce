// What convolutions and pooling share: windows that slide over the spatial dims of x [N, C, ...].
#pragma once

#include <algorithm>

#include "compiler/base/dim_prover.h"
#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// How many remainders of the taps' places by the stride there are.
inline int64_t remainders(int64_t kernel, int64_t stride, int64_t dilation) {
  return dilation == 1 ? std::min(kernel, stride) : stride;
}

struct Windows {
  std::vector<Dim> kernel, in, out;  // one a spatial dim
  std::vector<int64_t> strides, dilation, before, after;

  size_t rank() const { return kernel.size(); }
  // Whether strides leave few remainders: where each has its own copy, or its own part of the code.
  bool few_phases() const {
    constexpr int64_t kMost = 32;
    for (size_t d = 0; d < rank(); ++d) {
      if (remainders(kernel[d].constant().value_or(strides[d]), strides[d], dilation[d]) > kMost) return false;
    }
    return true;
  }
  // Where tap `tap` of window `window` lies, in x with `before` elements in front of it.
  Dim place(Context& context, size_t d, Dim window, Dim tap) const {
    return context.add(context.multiply(window, context.dim(strides[d])),
                       context.multiply(tap, context.dim(dilation[d])));
  }
};

inline Windows read_windows(const Operation& op, Dims kernel) {
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

// x as far as windows reach, with `value` where they hang over: stored, so that a tap needs no question where it lies.
inline Value padded(const Operation& op, const Windows& windows, Value x, const Expr& value) {
  Emitter& emit = op.emit;
  Context& context = op.context();
  Dims dims(x.dims.begin(), x.dims.begin() + 2);
  std::vector<bool> open(windows.rank());
  bool any = false;
  for (size_t d = 0; d < windows.rank(); ++d) {
    const auto last = [&](Dim count) { return context.subtract(count, context.dim(1)); };
    const Dim reach =
        context.add(windows.place(context, d, last(windows.out[d]), last(windows.kernel[d])), context.dim(1));
    const bool fits = windows.before[d] == 0 && DimProver(context).less_equal(reach, windows.in[d]) == Answer::kYes;
    open[d] = !fits;
    any |= !fits;
    dims.push_back(fits ? windows.in[d] : reach);
  }
  if (!any) return emit.stored("x", x);
  return emit.stored("padded",
                     emit.expression(dims, x.dtype, [=, &emit, &context, before = windows.before](const Dims& at) {
                       Dims from = at;
                       Expr inside;
                       for (size_t d = 0; d < open.size(); ++d) {
                         if (!open[d]) continue;
                         from[2 + d] = context.subtract(at[2 + d], context.dim(before[d]));
                         const Expr here = emit.inside(from[2 + d], context.dim(0), x.dims[2 + d]);
                         inside = inside ? both(inside, here) : here;
                       }
                       return choose(inside, x.at(from), value);
                     }));
}

}  // namespace tenon::compiler::kernels
