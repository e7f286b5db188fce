// Multiply-accumulates of operators: the work of a model, and what estimates of time are made of.
#pragma once

#include <cstdint>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// The multiply-accumulates of one call of an operator whose result is the variable: of convolutions, products and
// recurrent layers; 0 of all others. Sizes that are not known count as 1.
int64_t macs_of(const Module& module, const Function& function, VarId result, const Apply& apply);

}  // namespace tenon::compiler
