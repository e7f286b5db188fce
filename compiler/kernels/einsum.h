// Einsum equations, lowered to matrix products in register tiles where the equation is one.
#pragma once

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

Expected<std::vector<LazyTensor>> einsum(const OperatorCall& op);

}  // namespace tenon::compiler::kernels
