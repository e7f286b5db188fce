// How long the results of native kernels live in a function, by its code alone: what the planning of memory goes by,
// and the check that a file's plan is safe.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/executable/executable.h"

namespace tenon::runtime {

// Result `result` of the native call at instruction `first`: something may read it up to instruction `last`. A kernel
// of the reference or a function may give back what it is given: what its results hold, it may hold too.
struct StoredResult {
  uint32_t first = 0, result = 0, last = 0;
  bool leaves = false;  // it may outlive the frame, or, where code jumps back, nobody knows how long it lives
};

// In the order of the code; the function's instructions have passed their own checks.
std::vector<StoredResult> stored_results(const Function& function);

// Empty where the places are sound: inside of the arena, of results that do not leave, and never two at one place at
// one time. Else what is wrong.
std::string check_places(const Function& function);

}  // namespace tenon::runtime
