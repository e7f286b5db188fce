// Convolutions of 8-bit integers: general ones multiply packed int8x4 groups of four channels, depthwise ones words of
// four pixels, or are computed in floats, which represent their sums exactly.
#pragma once

#include <optional>

#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {

// Requires constant sizes, and x and w that are bytes minus a zero point (bytes.h); else nullopt.
std::optional<LazyTensor> byte_convolution(const OperatorCall& op);
// The depthwise case: one channel per group, sizes that sliding_window.h supports, and a pad value that is a byte; else
// nullopt.
std::optional<LazyTensor> byte_depthwise(const OperatorCall& op, const Windows& windows);

}  // namespace tenon::compiler::kernels
