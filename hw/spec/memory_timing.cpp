#include "hw/spec/memory_timing.h"

#include <fmt/format.h>

#include <vector>

#include "support/number.h"
#include "support/try.h"

namespace tenon::spec {

Expected<MemoryTiming> parse_memory_timing(std::string_view name, std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::string_view left = text;;) {
    const auto slash = left.find('/');
    parts.push_back(left.substr(0, slash));
    if (slash == std::string_view::npos) break;
    left.remove_prefix(slash + 1);
  }
  if (parts.size() != 2 && parts.size() != 3) {
    return error(fmt::format("{} is '{}', expected READ/WRITE or READ/WRITE/OUTSTANDING", name, text), {},
                 "as 60/40: latencies in cycles, and bursts that the memory accepts at a time", Fault::kUsage);
  }
  const auto part = [&](size_t i, std::string_view what, int64_t most) {
    return read_number<int64_t>(fmt::format("the {} of {}", what, name), parts[i], {1, most});
  };
  MemoryTiming memory;
  TENON_TRY_ASSIGN(read, part(0, "read latency", kMaxMemoryLatency));
  TENON_TRY_ASSIGN(write, part(1, "write latency", kMaxMemoryLatency));
  memory.read_latency = static_cast<int>(*read);
  memory.write_latency = static_cast<int>(*write);
  if (parts.size() == 3) {
    TENON_TRY_ASSIGN(outstanding, part(2, "number of bursts", kMaxOutstanding));
    memory.outstanding = static_cast<int>(*outstanding);
  }
  return memory;
}

std::string to_string(const MemoryTiming& memory) {
  return fmt::format("{}/{}/{}", memory.read_latency, memory.write_latency, memory.outstanding);
}

}  // namespace tenon::spec
