// A loop function that somebody wrote, taken into a kernel: where each element of its result is one expression, that
// expression is written where it is read, as an operator's; what sums up becomes stages of the kernel.
#pragma once

#include <vector>

#include "compiler/kernels/emitter.h"

namespace tenon::compiler::kernels {

// The function's results for these arguments. Refused: ragged buffers, libraries, sums with a schedule of
// their own.
Expected<std::vector<Value>> written_in(Emitter& emit, const loop::Function& function, const std::vector<Value>& args);

}  // namespace tenon::compiler::kernels
