// How the memory behind the accelerator's port answers: what the cycle model and, by it, the schedules assume.
#pragma once

#include <string>
#include <string_view>

#include "support/diagnostic.h"

namespace tenon::spec {

// In cycles of the accelerator's clock. By default, the memory model of the simulators.
struct MemoryTiming {
  int read_latency = 60;   // from a burst's address to its first beat
  int write_latency = 40;  // from a burst's last beat to its response
  int outstanding = 16;    // bursts that the memory accepts at a time, of reads and of writes each

  bool operator==(const MemoryTiming&) const = default;
};

inline constexpr int kMaxMemoryLatency = 100000, kMaxOutstanding = 1024;

// Reads "READ/WRITE" or "READ/WRITE/OUTSTANDING", as "200/200/16". An error of wrong usage names the part that is out
// of its bounds; `name` is what the text is, as "--memory".
Expected<MemoryTiming> parse_memory_timing(std::string_view name, std::string_view text);

// "READ/WRITE/OUTSTANDING", which parse_memory_timing() reads.
std::string to_string(const MemoryTiming& memory);

}  // namespace tenon::spec
