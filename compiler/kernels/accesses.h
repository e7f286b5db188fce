// Offsets of elements in buffers, and the strides of memory accesses along a loop.
#pragma once

#include <optional>

#include "compiler/loop/access.h"
#include "compiler/loop/loop.h"

namespace tenon::compiler::kernels {

// The row-major offset of an element in its buffer, which must not be ragged.
Dim offset(TypeContext& context, const loop::Buffer& buffer, const Dims& indices);
// The growth of the offset when the variable grows by 1; nullopt where the growth is not a constant.
std::optional<int64_t> stride(TypeContext& context, Symbol var, Dim offset);

}  // namespace tenon::compiler::kernels
