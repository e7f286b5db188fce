// What a step costs within less memory: plans of which kernels are called again, from the step as it is to the least
// memory that any plan found needs.
//
// Semantics: a plan is an order of the log's calls, in which a call may occur more than once; a result is freed after
// the last call that reads it before its next computation. Every plan of a frontier needs less memory than those before
// it, and costs no less: so a larger budget never takes longer. A frontier is a function of the log and the options.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/remat/log.h"

namespace tenon::compiler {

struct RematPlan {
  int64_t peak = 0;             // bytes, of inputs and results too
  int64_t cost = 0;             // of all calls, in the log's unit
  std::vector<uint32_t> order;  // calls of the log
  std::string found_by;
};

// The memory and the cost of an order; `order` and `found_by` are left out.
RematPlan measure(const runtime::remat::StepLog& log, std::span<const uint32_t> order);

// The calls of the order without those whose results are computed again before anything reads them.
std::vector<uint32_t> without_unread(const runtime::remat::StepLog& log, std::span<const uint32_t> order);

struct FrontierOptions {
  // Budgets that are tried, in equal ratios from the peak to the least that a call needs: of long logs fewer, so that
  // the time of a search is about that of its length.
  int64_t budgets = 48;
  int64_t effort = 20;      // replays of a local search for each of them (runtime/remat/best.h)
  double max_slowdown = 4;  // the cost of a replayed plan at most, times that of the step
  // Of longer logs only plans as a chain are tried (stages.h): the time of a replay grows with the square of the log.
  int64_t max_replayed_calls = 1000;
};

// At least one plan: the step as it is, the first.
std::vector<RematPlan> find_frontier(const runtime::remat::StepLog& log, const FrontierOptions& options = {});

// The plan of the frontier within the budget that costs least; nullptr where none is.
const RematPlan* within(std::span<const RematPlan> frontier, int64_t budget);

}  // namespace tenon::compiler
