// Transposed convolutions in tiles of registers (tiles.h).
//
// The results whose places leave the same remainder by the stride, in each dim, are a phase: a convolution with stride
// 1, of the taps that reach them. Phases are loops around the tiles, so that one nest serves all of them, and no tap is
// multiplied that reaches nothing; but what lies beyond x is multiplied as 0, whatever the weight.
#pragma once

#include <optional>

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// Nothing where a size of the weights is not known, or nothing is there; nothing is emitted then.
std::optional<Value> transposed_convolution_in_tiles(const Operation& op);

}  // namespace tenon::compiler::kernels
