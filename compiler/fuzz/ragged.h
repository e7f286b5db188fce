// Random loop functions over batches of different lengths, under random steps of schedules: what a step accepts
// computes what the plain loops do, in the evaluator and as native code, and what it refuses has a reason.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "support/diagnostic.h"
#include "support/function_ref.h"

namespace tenon::compiler::fuzz {

struct RaggedResult {
  struct Steps {
    int64_t accepted = 0, refused = 0;
  };
  int64_t programs = 0, native = 0;    // native: those that native code supports as scheduled
  std::map<std::string, Steps> steps;  // by primitive
  int64_t paddings_refused = 0;        // of loops beyond the padding of the storage
  std::optional<std::string> failure;  // the seed, the fewest steps that fail, and what they result in
};

// Checks the programs of `count` seeds from `seed` on, up to the first failure. `progress` is called with the number of
// programs that were checked. An error if code for this machine cannot be loaded.
Expected<RaggedResult> ragged_campaign(uint64_t seed, int64_t count, FunctionRef<void(int64_t done)> progress);

}  // namespace tenon::compiler::fuzz
