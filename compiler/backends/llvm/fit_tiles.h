// Tiles of accumulators that fit a processor's registers. A contraction is written once, for many wide registers; where
// there are fewer or narrower ones its tile would live on the stack, and is cut into smaller tiles instead:
//
//   acc[14, 32]; all of it       =>      for c in (2) { for r in (2) { acc[5, 16] of rows 5 r .. } acc[4, 16] of rows
//   10 .. 13 }
//
// Each element is computed as before, from its own first term to its last: results do not change.
#pragma once

#include "compiler/loop/loop.h"

namespace tenon::compiler::native {

struct Registers {
  int64_t count = 16, bytes = 16;
  bool fma = false;  // multiplies and adds in one step
  bool dot = false;  // so for dot products of bytes
};

loop::Function fit_tiles(TypeContext& context, loop::Function function, const Registers& registers);

}  // namespace tenon::compiler::native
