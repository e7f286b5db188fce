// Windows that slide over one channel each, as those of depthwise convolutions and of pooling do: read where x lies,
// with no padded copy of it.
//
//   for each channel
//     for the parts of its rows, for the parts of its columns
//       acc[rows of a tile][lanes] in registers = init
//       for the taps, unrolled: acc = step(acc, x or what pads it)
//       result[place] = what follows, of acc
//
// Parts are what lies inside x with all its taps, and what does not: only there does an element ask where it is, and
// as a rule the answer is known when code is made.
#pragma once

#include <functional>

#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {

struct Sliding {
  Windows windows;
  Expr pad, init;
  // The sum so far, and an element of x or `pad`; `at` is the image and the channel, `taps` are of the window.
  std::function<Expr(const Expr& sum, const Expr& x, const Dims& at, const Dims& taps)> step;
};

// Whether all sizes are known, over one or two dims.
bool slides(const Windows& windows);
// For op.arg(0) and the dims of op's result.
Value slide(const Operation& op, std::string_view name, const Sliding& sliding);

}  // namespace tenon::compiler::kernels
