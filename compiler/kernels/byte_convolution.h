// Convolutions of bytes: of words of four channels each, and depthwise ones in floats, which hold their sums exactly.
#pragma once

#include <optional>

#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {

// Where x and w are bytes less a number (bytes.h) and sizes are known.
std::optional<Value> byte_convolution(const Operation& op);
// Of one channel a group, where windows slide (slide.h) and the pad is a byte, too.
std::optional<Value> byte_depthwise(const Operation& op, const Windows& windows);

}  // namespace tenon::compiler::kernels
