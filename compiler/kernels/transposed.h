// Transposed convolutions as products (product.h).
//
// The output pixels whose coordinates have the same remainders by the strides form a phase: a convolution with stride 1
// of the kernel taps that contribute to them. Phases are axes of the batch, so that one nest serves all of them, and no
// multiplications are wasted on kernel taps that do not contribute. Elements beyond the boundary of x are
// multiplied as zeros, whatever the weight.
#pragma once

#include <optional>

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// nullopt where a size of the weights is not constant or a tensor is empty; nothing is emitted then.
std::optional<LazyTensor> transposed_convolution_in_tiles(const OperatorCall& op);

}  // namespace tenon::compiler::kernels
