// What software sees of the RTL at its registers and its interrupt, of `tiny`: interrupts, progress, errors of fetches.
// `options` are those of the device, "&KEY=VALUE".
// cosim_fuzz_test makes these checks, and cosim_mutation_test with faults planted.
#pragma once

#include <string_view>

#include "support/diagnostic.h"

namespace tenon::sim {

// Each enabled interrupt comes with each end of a launch, also at the output, and goes when it is acknowledged.
Status check_interrupts(std::string_view options);

// An engine that executes is reported with its instruction, and no other one.
Status check_progress(std::string_view options);

// An error in any beat of an instruction stops the launch at this instruction.
Status check_fetch_errors(std::string_view options);

}  // namespace tenon::sim
