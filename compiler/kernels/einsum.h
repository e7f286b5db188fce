// Sums of products by an equation of a letter an axis: as matrix products in tiles where they are any.
#pragma once

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

Expected<std::vector<Value>> einsum(const Operation& op);

}  // namespace tenon::compiler::kernels
