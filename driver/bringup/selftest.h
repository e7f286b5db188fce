// Is this device fit to be used? A few checks over the driver's interface alone, so that they run on every transport;
// each has a figure and, where it fails, says what to look at next.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/bringup/bundle.h"

namespace tenon::driver {

struct Check {
  std::string name;  // "registers", "memory walking ones", ...
  bool passed = false;
  std::string figure;            // what was measured or counted
  std::string failure;           // what was found, with the value that should be there; empty where it passed
  std::string next;              // what to look at
  std::optional<Bundle> bundle;  // where a launch gave a wrong result: what repeats it
};

struct SelftestOptions {
  uint64_t memory_bytes = 1 << 20;  // that the patterns go over
  uint64_t seed = 1;
};

// All checks, in order; a check whose device does not even answer fails, and the next ones are still tried.
std::vector<Check> selftest(Accelerator& accelerator, const SelftestOptions& options = {});

}  // namespace tenon::driver
