#include "runtime/run/limits.h"

#include <chrono>

namespace tenon::runtime {

void RunLimits::apply(SessionOptions& session) const {
  session.max_bytes = memory_mib << 20;
  session.max_steps = steps;
  if (stack > 0) session.max_stack = stack;
  session.max_time = std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

}  // namespace tenon::runtime
