// Windows that slide over one channel each, as those of depthwise convolutions and of pooling do.
//
//   for the channels, and of a large map for bands of its rows
//     plane = x, surrounded by what pads it, its columns taken apart by a stride (slide_plane.h)
//     for the tiles of its rows, for the vectors of its columns
//       acc[rows of a tile][lanes] in registers = init
//       for the taps of a row: for those of a column, unrolled: acc = step(acc, plane)
//       result[place] = what follows, of acc
//
// A plane is small enough for the first cache. No element asks where it is, so there are few kinds of tiles, and a row
// of the plane that was read serves all rows of a tile. Terms are added column by column of the window. Without a plane
// are maps of a few places with few taps, single rows, and what is read once and needs no padding.
#pragma once

#include <functional>

#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {

struct Sliding {
  Windows windows;
  Expr pad, init;
  // What a sum takes of an element of x or of `pad`.
  std::function<Expr(const Expr& x)> element;
  // The sum so far, and such an element; `at` is the image and the channel, `taps` are of the window.
  std::function<Expr(const Expr& sum, const Expr& x, const Dims& at, const Dims& taps)> step;
};

// Whether all sizes are known, over one or two dims.
bool slides(const Windows& windows);
// For op.arg(0) and the dims of op's result.
Value slide(const Operation& op, std::string_view name, const Sliding& sliding);

}  // namespace tenon::compiler::kernels
