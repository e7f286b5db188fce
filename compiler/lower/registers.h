// Register allocation of lowered functions.
#pragma once

#include <cstdint>

#include "runtime/executable/executable.h"

namespace tenon::compiler {

// Gives registers that are never live at the same time one number, so that frames are small: recursion is limited by
// registers. A greedy colouring of the interference graph in the order of definitions, where a Move and its source
// prefer one colour; a Move within one register is removed. The first Function::filled() registers keep their numbers.
// The code has no Kill.
void allocate_registers(runtime::Function& function);

}  // namespace tenon::compiler
