// Limits of one run, as command lines give them.
#pragma once

#include <cstdint>

#include "runtime/vm/session.h"

namespace tenon::runtime {

// 0: no limit; of the stack, the default of SessionOptions.
struct RunLimits {
  uint64_t memory_mib = 0, steps = 0, stack = 0;
  double seconds = 0;

  bool any() const { return memory_mib != 0 || steps != 0 || stack != 0 || seconds != 0; }
  // An error where a limit is out of range.
  Status apply(SessionOptions& session) const;
};

inline constexpr char kMaxMemoryHelp[] = "memory of the values of one run; 0: no limit";
inline constexpr char kMaxStepsHelp[] = "instructions of the virtual machine in one run; 0: no limit";
inline constexpr char kMaxStackHelp[] = "words of all frames of one run, which limit its recursion; 0: 2^25";
inline constexpr char kMaxSecondsHelp[] = "time of one run; 0: no limit";

}  // namespace tenon::runtime
