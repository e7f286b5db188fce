// Measures the entries of a costs file (compiler/partition/costs.h) on this machine.
#pragma once

#include "compiler/partition/costs.h"

namespace tenon::compiler {

// The processor's entries, by the wall time of kernels as sessions run them: convolutions of f32 and of i8, a sum of
// large tensors, a chain of small kernels. The medians of some calls of each; a few seconds in all.
Expected<Costs> measure_costs();

}  // namespace tenon::compiler
