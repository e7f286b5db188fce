// The policy `best` of a known future: a step whose log is known is replayed many times, and the evictions of the
// fastest replay are kept, as a machine can do that runs the same step again and again.
//
// Semantics: three kinds of replays are compared. (1) All policies with all kinds of release. (2) Policies that know
// the time until a storage's next use in the log: (c + neighbourhood) / (m^p d^g), with d this time instead of the time
// since the last access, for several neighbourhoods and exponents (compare Belady, A study of replacement algorithms
// for a virtual-storage computer, 1966). (3) Local search from the best of these: factors on the scores of single
// storages are changed at random, and kept where the step does not become slower. A replay that fails is the better the
// later it does. The search draws from a fixed seed: the result is a function of the log and the options.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/remat/simulate.h"

namespace tenon::runtime::remat {

struct Best {
  Replay replay;
  std::string found_by;     // the kind of replay: "eq, prompt", "next use", "local search"
  int64_t simulations = 0;  // that were compared
};

// `options` has the budget and the limits; its policy, release and scorer are not looked at. `effort` is the number of
// replays of the local search.
Best best_replay(const StepLog& log, const CoreOptions& options, int64_t effort);

}  // namespace tenon::runtime::remat
