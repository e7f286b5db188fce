#include "runtime/run/limits.h"

#include <fmt/format.h>

#include <chrono>

#include "support/number.h"
#include "support/try.h"

namespace tenon::runtime {

Status BudgetOptions::apply(SessionOptions& session) const {
  TENON_TRY_ASSIGN(found, remat::find_policy(policy));
  session.remat_policy = *found;
  if (budget.empty()) return {};
  TENON_TRY_ASSIGN(bytes, read_bytes("--budget", budget));
  session.budget = *bytes;
  return {};
}

std::string describe(const MemoryRecord& memory) {
  return fmt::format("{:.2f} MiB of tensors at most, {} given up, {} calls executed again",
                     static_cast<double>(memory.peak_bytes) * 0x1p-20, memory.evictions, memory.repeated_calls);
}

Status RunLimits::apply(SessionOptions& session) const {
  session.max_bytes = memory_mib << 20;
  session.max_steps = steps;
  if (stack > 0) session.max_stack = stack;
  session.max_time = std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
  return budget.apply(session);
}

}  // namespace tenon::runtime
