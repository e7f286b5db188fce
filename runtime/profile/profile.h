// The measurements of a session: the one record from which traces and reports are made.
//
// Times are wall clock in nanoseconds since the profile began; cycles are the accelerator's own.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "driver/accelerator.h"
#include "sim/simulator.h"

namespace tenon::runtime {

// One executed instruction of the machine. The names are the executable's, which outlives the record.
struct CallRecord {
  std::string_view name;    // kernel, program or function
  std::string_view layer;   // the model's node; may be empty
  std::string_view device;  // "cpu", "cuda", and of a launch that of its program, as "accel"
  int64_t begin_ns = 0, end_ns = 0;
  int64_t gpu_ns = 0;   // of a GPU's kernels by its own clock, without the copies of parameters and results
  int32_t launch = -1;  // index into launches; -1: the call was not a launch
};

// One launch of an accelerator program.
struct LaunchRecord {
  uint32_t program = 0;  // index into the executable's programs
  int64_t begin_ns = 0, end_ns = 0;
  driver::Counters counters;
  std::vector<sim::Interval> timeline;  // empty if it was not recorded
};

// The memory of the tensors of one run, without the caller's tensors and constants.
struct MemoryRecord {
  uint64_t arena_bytes = 0;  // planned, of all its frames
  uint64_t peak_bytes = 0;   // the maximum over time, arenas of frames included
  uint64_t allocations = 0;  // results that have memory of their own
  // Under a budget, of which inputs are a part: tensors whose memory was taken, calls that were executed again for
  // them, and the time of these.
  uint64_t evictions = 0, repeated_calls = 0;
  int64_t repeated_ns = 0;
};

// Of runs of many instances: calls of units that were put off, and how they were executed.
struct BatchCounts {
  uint64_t nodes = 0;                               // calls that were put off
  uint64_t calls = 0;                               // of functions, for batches of nodes and for single ones
  uint64_t flushes = 0;                             // how often all instances waited
  uint64_t bytes_gathered = 0, bytes_in_place = 0;  // operands of batches: copied, and read where they are

  BatchCounts& operator+=(const BatchCounts& other);
};

struct Profile {
  uint64_t runs = 0;
  BatchCounts batches;
  MemoryRecord memory;  // of the last run that came to its end
  std::vector<CallRecord> calls;
  std::vector<LaunchRecord> launches;
};

}  // namespace tenon::runtime
