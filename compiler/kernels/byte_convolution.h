// Convolutions of bytes: of words of four channels each.
#pragma once

#include <optional>

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// Where x and w are bytes less a number (bytes.h), those of w less 0, and sizes are known.
std::optional<Value> byte_convolution(const Operation& op);

}  // namespace tenon::compiler::kernels
