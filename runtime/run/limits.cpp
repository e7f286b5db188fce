#include "runtime/run/limits.h"

#include <fmt/format.h>

#include <chrono>

namespace tenon::runtime {

Status RunLimits::apply(SessionOptions& session) const {
  constexpr uint64_t kMaxMib = uint64_t{1} << 40;
  constexpr double kMaxSeconds = 1e9;
  if (memory_mib > kMaxMib) {
    return error(fmt::format("--max-memory is {}, must be at most {}", memory_mib, kMaxMib), {}, {}, Fault::kUsage);
  }
  if (!(seconds >= 0 && seconds <= kMaxSeconds)) {
    return error(fmt::format("--max-seconds is {}, must be 0 to {}", seconds, kMaxSeconds), {}, {}, Fault::kUsage);
  }
  session.max_bytes = memory_mib << 20;
  session.max_steps = steps;
  if (stack > 0) session.max_stack = stack;
  session.max_time = std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
  return {};
}

}  // namespace tenon::runtime
