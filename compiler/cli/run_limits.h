// The options of the limits of one run.
#pragma once

#include "compiler/cli/command.h"
#include "runtime/run/limits.h"

namespace tenon::cli {

inline void declare(Options& options, runtime::RunLimits& limits) {
  options.option(limits.memory_mib, "--max-memory", "MIB", runtime::kMaxMemoryHelp);
  options.option(limits.steps, "--max-steps", "N", runtime::kMaxStepsHelp);
  options.option(limits.stack, "--max-stack", "N", runtime::kMaxStackHelp);
  options.option(limits.seconds, "--max-seconds", "SECONDS", runtime::kMaxSecondsHelp);
}

}  // namespace tenon::cli
