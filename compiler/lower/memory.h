// Memory of lowered code: registers are emptied after their last use, and results of native kernels get slots in the
// arena of the function's frames. Both by the liveness of the code itself (runtime/executable/liveness.h), by which the
// loader checks them again.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/executable/executable.h"

namespace tenon::compiler {

// Adds a Kill after each register's last use on each path, or after the write of a register that nothing reads; what
// dies on one side of a jump is emptied where the other side begins.
void insert_kills(runtime::Function& function);

// The memory that a frame of a function takes by its plan.
struct FrameMemory {
  size_t placed = 0;          // results that are in the arena
  int64_t arena = 0;          // bytes
  int64_t peak = 0;           // the most bytes of it that are live at once
  int64_t total = 0;          // bytes of an arena without reuse
  size_t outside = 0;         // results of other calls, and results that escape: allocated when they are made
  int64_t outside_bytes = 0;  // of these; at most, since a reference kernel may return a view of its argument
};

// Gives results of native kernels slots in the arena, and the arena its size. `bytes`: by register, the size of each
// call's result where it is known; a result that is empty, of unknown size or escapes the frame stays outside. The code
// has its kills.
FrameMemory place_results(runtime::Function& function, const std::map<runtime::Register, int64_t>& bytes);

// "12 results in an arena of 4096 bytes (3584 live at once, 16384 without reuse); 2 outside, 512 bytes"
std::string str(const FrameMemory& memory);

}  // namespace tenon::compiler
