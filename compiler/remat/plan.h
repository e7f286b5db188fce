// The memory of a function within a budget: its frontier, and the plan of it that fits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/remat/frontier.h"
#include "compiler/remat/step_log.h"

namespace tenon::compiler {

struct MemoryPlans {
  FunctionLog step;
  std::vector<RematPlan> frontier;
  size_t chosen = 0;  // in the frontier: within the budget, or the last one, which needs least
  // What the lowered code takes at most with the chosen plan: inputs, its arena, results outside of it and the memory
  // of kernels. Nothing where other functions or reference kernels take part, whose memory is not known.
  std::optional<int64_t> bound = {};

  const RematPlan& plan() const { return frontier[chosen]; }
  // The calls that a plan executes again.
  size_t repeated(const RematPlan& plan) const { return plan.order.size() - step.log.calls.size(); }
};

// Plans of a function whose kernels are grouped already (kernel_passes): what is grouped anew would be rounded anew.
// The chosen one is within the budget; of 0, the first one. An error of function_log.
Expected<MemoryPlans> plan_memory(Context& context, const Module& module, const Function& function, int64_t budget,
                                  const LogOptions& memory = {}, const FrontierOptions& options = {});

// The error for a budget that no plan keeps: the least bytes, and the kernel that reads and makes most.
Diagnostic beyond_budget(const MemoryPlans& plans, int64_t budget);

// A line for each plan: bytes, the share of the step's, time relative to the step, calls that are repeated.
std::string str(const MemoryPlans& plans);

}  // namespace tenon::compiler
