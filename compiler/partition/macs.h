// The multiply-accumulates of operators: of convolutions, products and recurrent layers.
#pragma once

#include <cstdint>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// Of one call of the operator that the binding applies; 0 for all other operators. Sizes that are not known count as 1.
int64_t macs_of(const Module& module, const Function& function, const Binding& binding, const Apply& apply);

}  // namespace tenon::compiler
