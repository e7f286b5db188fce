// How long registers live in lowered code, and where in a session's arena native kernels' results lie.
#pragma once

#include <cstdint>
#include <map>

#include "runtime/executable/executable.h"

namespace tenon::compiler {

// Frees each register behind its last read, or where it is written and never read. The code is one straight line that
// ends in its only Return.
void insert_kills(runtime::Function& function);

// Gives the results of native kernels places in the arena, and the arena its size. `bytes`: the registers whose size is
// known; the others, and what leaves the function, stay outside. The code has its kills.
void place_results(runtime::Function& function, const std::map<runtime::Register, int64_t>& bytes);

}  // namespace tenon::compiler
