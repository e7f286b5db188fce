// Windows that slide over the spatial dims of [N, C, ...]: what the gradients of convolutions and of pooling share.
#pragma once

#include <vector>

#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler::gradients {

// The windows along one spatial dim of size `size`: element j of window i has the index i * stride + j * dilation -
// before.
struct WindowAxis {
  Dim size, count;
  int64_t kernel = 1, stride = 1, before = 0, after = 0, dilation = 1;
};

// From the attributes strides, padding and dilation, the spatial sizes of x and the numbers of windows.
std::vector<WindowAxis> window_axes(const GradientBuilder& g, const Dims& x, const Dims& y,
                                    const std::vector<int64_t>& kernel);

// The indices of the elements of all windows, i64 [count, kernel]; those in the padding are out of range.
Term window_indices(Formula& formula, const WindowAxis& axis);

// The elements of all windows of x, padded with `value`: [N, C, count, kernel] with the last two for each spatial dim.
Term window_elements(const Term& x, const std::vector<WindowAxis>& axes, double value);

// The adjoint of windows with the weights w [O, C / groups, kernel...], as those of a convolution: dy [N, O, count...]
// times w, added at the elements of the windows; [N, C, size...].
Term spread_windows(const Term& dy, const Term& w, const std::vector<WindowAxis>& axes, int64_t groups);
// The same with weights of 1 in each channel: [N, C, count...] to [N, C, size...].
Term spread_windows(const Term& dy, const std::vector<WindowAxis>& axes);

// The indices of windows along one spatial dim of size `size`, i64 [count, length], all in range, and which of them are
// elements of the window, bools.
struct IndexedWindows {
  Dim size, count, length;
  Term indices, inside;
};
IndexedWindows indexed_windows(Formula& formula, const WindowAxis& axis);

// The adjoint of the maxima over windows: dy, added at the first maximum of each window.
Term at_maxima(const Term& x, const Term& dy, const std::vector<IndexedWindows>& windows);

}  // namespace tenon::compiler::gradients
