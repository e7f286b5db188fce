// Weights packed into panels for micro-kernels.
#pragma once

#include "compiler/kernels/emitter.h"

namespace tenon::compiler::kernels {

// w with an axis split into panels: [panels, the other axes, size], the last panel padded with zeros. A constant is
// packed at compile time, another tensor in each call.
LazyTensor pack(Emitter& emit, const LazyTensor& w, size_t axis, int64_t size);

}  // namespace tenon::compiler::kernels
