// Replays the log of a training step under a budget of memory: how much longer the step takes with a policy.
//
// Semantics: operators are not executed; each takes the time that the log gives. At the end, the step's results are
// computed again where they are evicted, and pinned one after the other. Times are integers, so a replay is exact.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/remat/core.h"
#include "runtime/remat/log.h"

namespace tenon::runtime::remat {

struct Replay {
  int64_t clock = 0;  // at the end; 1 at the beginning
  int64_t peak = 0;   // bytes
  int64_t operators = 0, evictions = 0, recomputed = 0;
  size_t events = 0;            // of the log that were replayed completely
  std::vector<uint32_t> order;  // the calls of the log as they were executed, those again included
  std::optional<Failure> failure;
  std::string problem;  // the message of the failure
};

// Where a replay is, for a scorer.
struct Position {
  size_t event = 0;             // of the log that is being replayed; their number while results are pinned
  std::vector<uint32_t> roots;  // by StorageId: the log's number of the storage's root
};

// `options.scorer` and the limits are used as they are given.
Replay replay(const StepLog& log, const CoreOptions& options, Position* position = nullptr);

// The step without a budget.
Replay undisturbed(const StepLog& log);

// The budget as a fraction of the undisturbed step's peak, and a limit on the time: a step that takes more than
// `max_slowdown` times the undisturbed one fails, as does one that runs 100 times its operators, which operators that
// take no time could do for long. Source of the ratio: Kirisame et al. 2021, section 4.
CoreOptions options_for(const StepLog& log, const Replay& base, double ratio, double max_slowdown);

}  // namespace tenon::runtime::remat
