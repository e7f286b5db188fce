// Tiles of accumulators that fit a processor's registers. A contraction is scheduled once, for many wide registers; on
// levels with fewer or narrower registers its tile would be spilled, so it is split into smaller tiles:
//
//   acc[14, 32]; the whole tile   =>   for c in (2) {
//                                        for r in (2) { acc[5, 16] of rows 5 r .. }
//                                        acc[4, 16] of rows 10 .. 13
//                                      }
//
// The terms of each element are summed in the original order: results do not change.
#pragma once

#include "compiler/loop/loop.h"
#include "compiler/machine/machine.h"

namespace tenon::compiler::native {

loop::Function fit_tiles(TypeContext& context, loop::Function function, const Machine& machine);

}  // namespace tenon::compiler::native
