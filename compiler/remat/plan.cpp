#include "compiler/remat/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/try.h"

namespace tenon::compiler {

Expected<MemoryPlans> plan_memory(Context& context, const Module& module, const Function& function, int64_t budget,
                                  const LogOptions& memory, const FrontierOptions& options) {
  MemoryPlans plans;
  TENON_TRY_ASSIGN(step, function_log(context, module, function, memory));
  plans.step = std::move(*step);
  plans.frontier = find_frontier(plans.step.log, options);
  if (budget == 0) return plans;
  const RematPlan* plan = within(plans.frontier, budget);
  plans.chosen = plan ? static_cast<size_t>(plan - plans.frontier.data()) : plans.frontier.size() - 1;
  return plans;
}

Diagnostic beyond_budget(const MemoryPlans& plans, int64_t budget) {
  const auto& log = plans.step.log;
  const auto bytes_of = [&](const runtime::remat::StepLog::Call& call) {
    int64_t bytes = 0;
    for (const uint32_t arg : call.args) bytes += log.bytes[arg];
    for (const auto& result : call.results) bytes += result.bytes;
    return bytes;
  };
  const auto largest = std::ranges::max_element(log.calls, {}, bytes_of);
  std::string help =
      fmt::format("--budget {} is the least", std::max(plans.frontier.back().peak, plans.bound.value_or(0)));
  if (largest != log.calls.end()) {
    help += fmt::format("; '{}' alone reads and writes {} bytes, and inputs have {}", largest->name, bytes_of(*largest),
                        log.constant_bytes());
  }
  return {.what = fmt::format("no plan was found within {} bytes of tensors", budget),
          .where = {},
          .help = help,
          .fault = Fault::kUsage};
}

std::string str(const MemoryPlans& plans) {
  const RematPlan& step = plans.frontier.front();
  std::string text = fmt::format("{:>14}  {:>6}  {:>6}  {:>8}\n", "bytes", "share", "time", "repeated");
  for (size_t i = 0; i < plans.frontier.size(); ++i) {
    const RematPlan& plan = plans.frontier[i];
    text += fmt::format("{:>14}  {:>6.3f}  {:>6.3f}  {:>8}{}\n", plan.peak,
                        static_cast<double>(plan.peak) / static_cast<double>(std::max<int64_t>(step.peak, 1)),
                        static_cast<double>(plan.cost) / static_cast<double>(std::max<int64_t>(step.cost, 1)),
                        plans.repeated(plan), i == plans.chosen && (i > 0 || plans.bound) ? "  chosen" : "");
  }
  return text;
}

}  // namespace tenon::compiler
