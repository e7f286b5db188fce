// A second replay of logs, written for its shortness: recursion, sets, and sums that are computed whenever they are
// asked for. And random steps to compare it with the core.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/remat/simulate.h"
#include "support/random.h"

namespace tenon::runtime::remat {

StepLog random_step(Random& random);

// The clock at the end; nothing where the step fails. Storages are released as by Release::kEvict.
std::optional<int64_t> naive_clock(const StepLog& log, const CoreOptions& options);

}  // namespace tenon::runtime::remat
