// Convolutions of bytes with zero points as sums of products of the bytes themselves.
//
//   sum over kernel taps of (x - z) * w = sum over kernel taps inside of the image of x * w + correction
//   correction = -z * (sum of w over kernel taps inside) + p * (sum of w over kernel taps outside)
//
// where p is the padding. So the bytes are padded with zeros, which copies fill in. The correction depends on the
// output channel and on the kernel taps inside, which are the same for all pixels but those at the boundary: a small
// table.
#pragma once

#include <optional>

#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {

// The corrections of each element of the result, in i32 with wraparound. `weights`: i8 [outputs, inputs, ...]. nullopt
// where sizes are not constant, or most pixels are at a boundary.
std::optional<LazyTensor> zero_point_corrections(const OperatorCall& op, const Windows& windows, const Tensor& weights,
                                                 int64_t zero, int64_t padding);

}  // namespace tenon::compiler::kernels
