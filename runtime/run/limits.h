// Limits of one run, and the bounds of what command lines give for runs.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/vm/session.h"
#include "support/command_line.h"

namespace tenon::runtime {

inline constexpr Bounds<int64_t> kThreadBounds{0, 1024};  // 0: all usable processors
inline constexpr Bounds<double> kLaunchSecondsBounds{.least = 0, .most = 1e6, .above = true};

// SessionOptions::budget, of which no text means none.
struct BudgetOptions {
  std::string budget, policy = "eq";

  Status apply(SessionOptions& session) const;
  void declare(Options& options) {
    options.option(budget, "--budget", "BYTES",
                   "memory of the tensors of one run, as 64MiB: others are given up and computed again");
    options.option(policy, "--remat-policy", "POLICY", "which tensors are given up: eq, dtr, local, lru, size or msps");
  }
};

// "4.0 MiB of tensors at most, 12 given up, 9 calls executed again".
std::string describe(const MemoryRecord& memory);

// 0: no limit; of the stack, the default of SessionOptions.
struct RunLimits {
  uint64_t memory_mib = 0, steps = 0, stack = 0;
  double seconds = 0;
  BudgetOptions budget;

  bool any() const { return memory_mib != 0 || steps != 0 || stack != 0 || seconds != 0 || !budget.budget.empty(); }
  Status apply(SessionOptions& session) const;

  void declare(Options& options) {
    options.option(memory_mib, "--max-memory", "MIB", "memory of the values of one run; 0: no limit",
                   {0, uint64_t{1} << 40});
    options.option(steps, "--max-steps", "N", "instructions of the virtual machine in one run; 0: no limit", {});
    options.option(stack, "--max-stack", "N", "words of all frames of one run, which limit its recursion; 0: 2^25",
                   {0, uint64_t{1} << 40});
    options.option(seconds, "--max-seconds", "SECONDS", "time of one run; 0: no limit", {0, 1e9});
    budget.declare(options);
  }
};

}  // namespace tenon::runtime
