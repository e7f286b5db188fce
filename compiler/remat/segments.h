// Plans that keep what passes from one segment of the step to the next and compute the inside of a segment again, as a
// whole, when the rest of the step first reads it.
//
// Source: Chen et al., "Training deep nets with sublinear memory cost", 2016, section 3, with the search over budgets
// of its algorithm 3; here for any log, since a cut may pass any number of tensors. The first part
// of the step, which is cut, ends where the memory of the undisturbed step is largest.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/remat/log.h"

namespace tenon::compiler {

// The order of calls whose segments are as large as the budget allows: beside a segment there are the constants, what
// the segments before it keep, and what the rest of the step holds when it reads the segment. A segment is cut at the
// place in its second half that the fewest bytes pass. What cannot be computed again is kept. In time and memory linear
// in the log; that the order stays within the budget is not promised.
std::vector<uint32_t> segmented_order(const runtime::remat::StepLog& log, int64_t budget);

}  // namespace tenon::compiler
