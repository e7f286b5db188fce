// Convolutions as matrix products one of whose operands is never stored as a whole: the column of an output pixel has
// the elements of x that its window covers, and the template of products for GPUs computes panels of columns where it
// reads them (implicit GEMM; Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning", 2014). Where the channels
// of x are innermost in memory (NHWC), a pixel has a row, whose terms are in the order of memory: kernel indices, then
// channels.
#pragma once

#include <optional>

#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {

// Requires a machine with threads, constant sizes but that of the batch, and as many output channels of a group, and
// output pixels, as a block has threads along them; else nullopt. `pad`: the padding value.
std::optional<LazyTensor> implicit_product(const OperatorCall& op, const Windows& windows, const Expr& pad);

}  // namespace tenon::compiler::kernels
