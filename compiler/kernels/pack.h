// Weights as micro-kernels read them.
#pragma once

#include "compiler/kernels/emitter.h"

namespace tenon::compiler::kernels {

// w with an axis in blocks: [blocks, the other axes, size], the last block filled up with zeros. Of a constant when it
// is compiled, of another value in each call. The axis has a constant size.
Value pack(Emitter& emit, const Value& w, size_t axis, int64_t size);

}  // namespace tenon::compiler::kernels
