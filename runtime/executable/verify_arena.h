// The check of a function's memory plan, which is part of a file and trusted in nothing.
#pragma once

#include <span>
#include <string>

#include "runtime/executable/executable.h"

namespace tenon::runtime {

// Empty if every arena slot is inside the arena, belongs to a result that does not escape the frame, and overlaps no
// slot of a result that is live at the same time, but for the one that it replaces (ResultRange); else a description of
// the first fault. The function's instructions have passed their own checks.
std::string check_arena(const Function& function, std::span<const NativeCode> natives);

}  // namespace tenon::runtime
