// The self-test of a device: a few checks over the driver's interface alone, so that they run on every transport; each
// has a figure and, where it fails, advice for the next step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/bringup/reproducer.h"

namespace tenon::driver {

struct Check {
  std::string name;  // "registers", "memory walking ones", ...
  bool passed = false;
  std::string figure;                    // the measured or counted value
  std::string failure;                   // the actual and the expected value; empty where the check passed
  std::string next;                      // advice
  std::optional<Reproducer> reproducer;  // reproduces the wrong result of a launch
};

struct SelftestOptions {
  uint64_t memory_bytes = 1 << 20;  // that the patterns cover
  uint64_t seed = 1;
};

// Runs all checks, in order; a check fails where the device does not answer, and the next checks run nevertheless.
std::vector<Check> selftest(Accelerator& accelerator, const SelftestOptions& options = {});

}  // namespace tenon::driver
