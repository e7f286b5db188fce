// Sliding windows over one channel each, as of depthwise convolutions and pooling.
//
//   for the channels, and for bands of rows of a large map
//     padded input = x with padding, its columns split into phases by the stride (padded_input.h)
//     for the tiles of rows, for the vectors of columns
//       acc[rows of a tile][lanes] in registers = init
//       for kw: for kh, unrolled: acc = step(acc, padded input)
//       result[indices of the tile] = epilogue of acc
//
// A padded input fits into L1. No element needs a bounds check, so there are few kinds of tiles, and a loaded row of
// the padded input serves all rows of a tile. Terms are added column by column of the window. Small maps with few
// kernel taps, single rows, and inputs that are read once and need no padding are read in place instead.
#pragma once

#include <functional>

#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {

struct SlidingWindow {
  Windows windows;
  Expr pad, init;
  // The term of an element of x or of `pad`.
  std::function<Expr(const Expr& x)> element;
  // Accumulates a term; `at` is the image and the channel, `kernel_index` the position in the window.
  std::function<Expr(const Expr& sum, const Expr& x, const Dims& at, const Dims& kernel_index)> step;
};

// Whether the windows are supported: all sizes are constant, and there are one or two spatial dims.
bool has_sliding_window(const Windows& windows);
// The sliding window over op.arg(0), with the dims of op's result.
LazyTensor sliding_window(const OperatorCall& op, std::string_view name, const SlidingWindow& sliding);

}  // namespace tenon::compiler::kernels
