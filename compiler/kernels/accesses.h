// How far apart the elements lie that neighbouring iterations of a loop take.
#pragma once

#include <optional>

#include "compiler/loop/access.h"
#include "compiler/loop/loop.h"

namespace tenon::compiler::kernels {

// The place of an element in its buffer, which is not ragged.
Dim offset(TypeContext& context, const loop::Buffer& buffer, const Dims& indices);
// What the offset grows by when the variable does; nothing where that is no constant.
std::optional<int64_t> stride(TypeContext& context, Symbol var, Dim offset);

}  // namespace tenon::compiler::kernels
