// Inputs of a model for benchmarks.
#pragma once

#include <vector>

#include "runtime/executable/executable.h"

namespace tenon::cli {

// The same values at each call: floats in -1 .. 1, integers 0 or 1, which are small indices and small lengths too. An
// error if an input has no fixed shape.
Expected<std::vector<runtime::Tensor>> random_inputs(const runtime::Executable& executable);

}  // namespace tenon::cli
