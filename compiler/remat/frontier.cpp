#include "compiler/remat/frontier.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/remat/stages.h"
#include "runtime/remat/best.h"

namespace tenon::compiler {
namespace {

using runtime::remat::CoreOptions;
using runtime::remat::StepLog;

constexpr uint32_t kNoAllocation = UINT32_MAX;

// What any order needs: the constants, and what a call reads and makes beside them.
int64_t least_peak(const StepLog& log) {
  std::vector<bool> constant(log.bytes.size(), false);
  for (const StepLog::Event& event : log.events)
    if (event.kind == StepLog::Kind::kConstant) constant[event.index] = true;
  int64_t most = 0;
  for (const StepLog::Call& call : log.calls) {
    int64_t bytes = 0;
    for (const uint32_t arg : call.args)
      if (!constant[arg]) bytes += log.bytes[arg];
    for (const runtime::remat::NewResult& result : call.results) bytes += result.bytes;
    most = std::max(most, bytes + call.own_bytes);
  }
  int64_t results = 0;
  for (const uint32_t tensor : log.results)
    if (!constant[tensor]) results += log.bytes[tensor];
  return log.constant_bytes() + std::max(most, results);
}

// The optimal plans of the log as a chain, for budgets from `peak` to `least`, also where only what is cheap to compute
// is computed again. What is small beside the peak may be large beside a small budget, so that has units of its own.
std::vector<std::vector<uint32_t>> chain_orders(const StepLog& log, int64_t peak, int64_t least) {
  constexpr int64_t kStages = 64, kSlots = 1000;
  std::vector<std::vector<uint32_t>> orders;
  for (const double kept_share : {0.0, 0.25, 0.5, 0.75, 0.9}) {
    const StagedStep staged(log, kStages, kept_share);
    const int64_t kept = staged.kept_bytes();
    for (const int64_t part : {1, 4}) {
      const int64_t most = (peak - kept) / part;
      if (most <= 0) continue;
      const ChainPlans plans(staged.chain(), most, kSlots);
      // Of budgets with one cost, the least.
      std::optional<int64_t> known;
      int64_t least_bytes = 0;
      for (int64_t bytes = most; kept + bytes >= least && bytes > most / 8; bytes -= (bytes + 39) / 40) {
        const std::optional<int64_t> cost = plans.cost(bytes);
        if (!cost) break;
        if (known && cost != known) orders.push_back(staged.order(plans.steps(least_bytes)));
        known = cost;
        least_bytes = bytes;
      }
      if (known) orders.push_back(staged.order(plans.steps(least_bytes)));
    }
  }
  return orders;
}

// The first plan, and of the others those that need less memory and cost less than all with less memory still, from the
// most memory on.
std::vector<RematPlan> least_costs(std::vector<RematPlan> found) {
  RematPlan first = std::move(found.front());
  found.erase(found.begin());
  std::erase_if(found, [&](const RematPlan& plan) { return plan.peak >= first.peak; });
  std::ranges::stable_sort(found, [](const RematPlan& a, const RematPlan& b) {
    return std::pair(a.peak, a.cost) < std::pair(b.peak, b.cost);
  });
  std::vector<RematPlan> frontier;
  for (RematPlan& plan : found)
    if (frontier.empty() || plan.cost < frontier.back().cost) frontier.push_back(std::move(plan));
  frontier.push_back(std::move(first));
  std::ranges::reverse(frontier);
  return frontier;
}

}  // namespace

RematPlan measure(const StepLog& log, std::span<const uint32_t> order) {
  const std::vector<uint32_t> first = log.first_results();
  // Each is from one execution of a call; views have the memory of what they view.
  struct Allocation {
    uint32_t first = 0, last = 0;
    int64_t bytes = 0;
  };
  std::vector<Allocation> allocations;
  std::vector<uint32_t> allocation_of(log.bytes.size(),
                                      kNoAllocation);  // kNoAllocation: a constant, or not computed yet
  RematPlan result;
  const auto end = static_cast<uint32_t>(order.size());
  for (uint32_t at = 0; at < end; ++at) {
    const StepLog::Call& call = log.calls[order[at]];
    result.cost += call.cost;
    for (const uint32_t arg : call.args)
      if (allocation_of[arg] != kNoAllocation) allocations[allocation_of[arg]].last = at;
    for (uint32_t k = 0; k < call.results.size(); ++k) {
      const runtime::remat::NewResult& made = call.results[k];
      uint32_t& allocation = allocation_of[first[order[at]] + k];
      if (made.view_of) {
        allocation = allocation_of[call.args[*made.view_of]];
      } else {
        allocation = static_cast<uint32_t>(allocations.size());
        allocations.push_back({at, at, made.bytes});
      }
    }
  }
  for (const uint32_t tensor : log.results)
    if (allocation_of[tensor] != kNoAllocation) allocations[allocation_of[tensor]].last = end;
  std::vector<int64_t> change(order.size() + 2, 0);
  for (const Allocation& allocation : allocations) {
    change[allocation.first] += allocation.bytes;
    change[allocation.last + 1] -= allocation.bytes;
  }
  for (uint32_t at = 0; at < end; ++at) {
    change[at] += log.calls[order[at]].own_bytes;
    change[at + 1] -= log.calls[order[at]].own_bytes;
  }
  int64_t live = log.constant_bytes();
  for (const int64_t bytes : change) {
    live += bytes;
    result.peak = std::max(result.peak, live);
  }
  return result;
}

std::vector<uint32_t> without_unread(const StepLog& log, std::span<const uint32_t> order) {
  const std::vector<uint32_t> first = log.first_results();
  // Backwards: whether something reads the tensor before it is computed again.
  std::vector<bool> read(log.bytes.size(), false), seen(log.calls.size(), false);
  for (const uint32_t tensor : log.results) read[tensor] = true;
  std::vector<bool> kept(order.size(), true);
  std::vector<uint32_t> left(log.calls.size(), 0);
  for (const uint32_t call : order) ++left[call];
  for (size_t at = order.size(); at-- > 0;) {
    const StepLog::Call& call = log.calls[order[at]];
    bool wanted = false;
    for (uint32_t k = 0; k < call.results.size(); ++k) {
      wanted = wanted || read[first[order[at]] + k];
    }
    // A call whose results have no reader at all is executed once, as in the step.
    if (!wanted && (seen[order[at]] || left[order[at]] > 1)) {
      kept[at] = false;
      --left[order[at]];
      continue;
    }
    seen[order[at]] = true;
    for (uint32_t k = 0; k < call.results.size(); ++k) read[first[order[at]] + k] = false;
    for (const uint32_t arg : call.args) read[arg] = true;
  }
  std::vector<uint32_t> result;
  for (size_t at = 0; at < order.size(); ++at)
    if (kept[at]) result.push_back(order[at]);
  return result;
}

std::vector<RematPlan> find_frontier(const StepLog& log, const FrontierOptions& options) {
  std::vector<uint32_t> plain(log.calls.size());
  std::iota(plain.begin(), plain.end(), 0U);
  std::vector<RematPlan> found;
  const auto add = [&](std::vector<uint32_t> order, std::string found_by) {
    RematPlan plan = measure(log, order);
    plan.order = std::move(order);
    plan.found_by = std::move(found_by);
    found.push_back(std::move(plan));
  };
  add(std::move(plain), "the step as it is");
  const int64_t peak = found[0].peak, cost = found[0].cost;
  const auto calls = std::max<int64_t>(1, static_cast<int64_t>(log.calls.size()));
  const int64_t least = least_peak(log);
  for (std::vector<uint32_t>& order : chain_orders(log, peak, least)) add(without_unread(log, order), "chain");
  if (calls > options.max_replayed_calls) return least_costs(std::move(found));

  constexpr int64_t kSquaredCalls = 12'000'000, kLeastBudgets = 8;
  const int64_t budgets = std::min(options.budgets, std::max(kLeastBudgets, kSquaredCalls / (calls * calls)));
  const CoreOptions limits{
      .max_extra_cost = static_cast<int64_t>(options.max_slowdown * static_cast<double>(cost)) - cost,
      .max_extra_count = 100 * calls};
  // In equal ratios: a deep network has its cheap plans near the root of its peak.
  const double ratio =
      static_cast<double>(std::max<int64_t>(1, least)) / static_cast<double>(std::max<int64_t>(1, peak));
  for (int64_t i = 1; i <= budgets; ++i) {
    const double part = std::pow(ratio, static_cast<double>(i) / static_cast<double>(budgets));
    CoreOptions core = limits;
    core.budget = static_cast<int64_t>(static_cast<double>(peak) * part);
    runtime::remat::Best best = best_replay(log, core, options.effort);
    if (best.replay.failure) break;
    add(without_unread(log, best.replay.order), std::move(best.found_by));
  }
  return least_costs(std::move(found));
}

const RematPlan* within(std::span<const RematPlan> frontier, int64_t budget) {
  for (const RematPlan& plan : frontier)
    if (plan.peak <= budget) return &plan;
  return nullptr;
}

}  // namespace tenon::compiler
