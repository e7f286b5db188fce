// Sliding windows over one channel each, as of depthwise convolutions and pooling: plain sums over the kernel taps of
// each pixel, which a template turns into register tiles (compiler/schedules/sliding_window.h).
//
// Terms are added column by column of the window. A kernel tap outside of x reads the padding; a template separates the
// blocks of pixels whose windows are inside, which read x in place without a condition.
#pragma once

#include <functional>

#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {

struct SlidingWindow {
  Windows windows;
  LazyTensor x;    // stored if it is not yet
  Expr pad, init;  // literals
  // Elements of a row of the window that are accumulated together: 4 bytes are packed into an i32 (bytes.h), and the
  // windows' last kernel size is a multiple of 4.
  int64_t word = 1;
  // Accumulates an element, or a word; `at` is the image and the channel, `kernel_index` the position in the window,
  // in words along its last dim.
  std::function<Expr(const Expr& sum, const Expr& x, const Dims& at, const Dims& kernel_index)> step;
};

// Whether the windows are supported: all sizes are constant, and there are one or two spatial dims.
bool has_sliding_window(const Windows& windows);
// The result of the sliding window, with the dims of op's result.
LazyTensor sliding_window(const OperatorCall& op, std::string_view name, SlidingWindow sliding);

}  // namespace tenon::compiler::kernels
