#include "compiler/remat/stages.h"

#include <algorithm>
#include <functional>

namespace tenon::compiler {
namespace {

using runtime::remat::StepLog;

constexpr uint32_t kConstant = UINT32_MAX;

}  // namespace

StagedStep::StagedStep(const StepLog& log, int64_t most_stages, double kept_share)
    : log_(log), first_(log.first_results()) {
  read_log();
  const std::vector<int64_t> live = live_bytes(0);
  middle_ = static_cast<uint32_t>(std::ranges::max_element(live) - live.begin());
  keep_costly(kept_share);
  cut(std::max<int64_t>(1, most_stages));
  assign_backward();
  measure_stages();
}

void StagedStep::read_log() {
  const size_t tensors = log_.bytes.size();
  root_.resize(tensors);
  producer_.assign(tensors, kConstant);
  last_use_.assign(tensors, 0);
  kept_.assign(tensors, false);
  held_.assign(tensors, false);
  runs_once_.assign(log_.calls.size(), false);
  for (uint32_t tensor = 0; tensor < tensors; ++tensor) root_[tensor] = tensor;
  for (uint32_t call = 0; call < log_.calls.size(); ++call) {
    for (const uint32_t arg : log_.calls[call].args) last_use_[root_[arg]] = call;
    for (uint32_t k = 0; k < log_.calls[call].results.size(); ++k) {
      const uint32_t tensor = first_[call] + k;
      producer_[tensor] = call;
      if (const auto view = log_.calls[call].results[k].view_of) root_[tensor] = root_[log_.calls[call].args[*view]];
      last_use_[root_[tensor]] = call;
    }
  }
  const auto hold = [&](uint32_t tensor) {
    const uint32_t root = root_[tensor];
    if (producer_[tensor] != kConstant) keep_results(producer_[tensor]);
    held_[root] = producer_[root] != kConstant;
    if (held_[root]) keep_results(producer_[root]);
  };
  for (const uint32_t tensor : log_.results) hold(tensor);
  for (const StepLog::Event& event : log_.events)
    if (event.kind == StepLog::Kind::kKeep) hold(event.index);
}

// A call with one result that is kept is not executed again: all of its results are kept.
void StagedStep::keep_results(uint32_t call) {
  runs_once_[call] = true;
  for (uint32_t k = 0; k < log_.calls[call].results.size(); ++k) {
    const uint32_t root = root_[first_[call] + k];
    kept_[root] = producer_[root] != kConstant;
  }
}

void StagedStep::keep_costly(double share) {
  std::vector<uint32_t> read;
  double all = 0, kept = 0;
  for (uint32_t tensor = 0; tensor < root_.size(); ++tensor) {
    if (!is_made(tensor) || producer_[tensor] >= middle_ || last_use_[tensor] < middle_) continue;
    read.push_back(tensor);
    all += static_cast<double>(log_.bytes[tensor]);
  }
  std::ranges::stable_sort(read, std::greater(), [&](uint32_t tensor) {
    return static_cast<double>(log_.calls[producer_[tensor]].cost) /
           static_cast<double>(std::max<int64_t>(1, log_.bytes[tensor]));
  });
  for (const uint32_t tensor : read) {
    kept += static_cast<double>(log_.bytes[tensor]);
    if (kept > share * all) return;
    keep_results(producer_[tensor]);
  }
}

bool StagedStep::is_made(uint32_t tensor) const {
  return producer_[tensor] != kConstant && root_[tensor] == tensor && !kept_[tensor];
}

// The bytes that the calls from `from` on make and later calls read, by the call that is executed: those of the call
// itself, and what is kept, included.
std::vector<int64_t> StagedStep::live_bytes(uint32_t from) const {
  std::vector<int64_t> live(log_.calls.size() + 1, 0);
  for (uint32_t tensor = 0; tensor < root_.size(); ++tensor) {
    if (producer_[tensor] == kConstant || root_[tensor] != tensor || producer_[tensor] < from) continue;
    live[producer_[tensor]] += log_.bytes[tensor];
    if (!held_[tensor]) live[last_use_[tensor] + 1] -= log_.bytes[tensor];
  }
  for (size_t call = 1; call < live.size(); ++call) live[call] += live[call - 1];
  for (size_t call = 0; call < log_.calls.size(); ++call) live[call] += log_.calls[call].own_bytes;
  return live;
}

void StagedStep::cut(int64_t most_stages) {
  last_forward_.assign(root_.size(), 0);
  for (uint32_t call = 0; call < middle_; ++call)
    for (const uint32_t arg : log_.calls[call].args) last_forward_[root_[arg]] = call;
  passing_.assign(middle_ + 2, 0);
  std::vector<int64_t> made(middle_ + 1, 0);  // before each call
  int64_t all = 0;
  for (uint32_t tensor = 0; tensor < root_.size(); ++tensor) {
    if (!is_made(tensor) || producer_[tensor] >= middle_) continue;
    all += log_.bytes[tensor];
    made[producer_[tensor] + 1] += log_.bytes[tensor];
    if (last_forward_[tensor] <= producer_[tensor]) continue;
    passing_[producer_[tensor] + 1] += log_.bytes[tensor];
    passing_[last_forward_[tensor] + 1] -= log_.bytes[tensor];
  }
  for (size_t call = 1; call < passing_.size(); ++call) passing_[call] += passing_[call - 1];
  for (size_t call = 1; call < made.size(); ++call) made[call] += made[call - 1];
  const int64_t least = std::max<int64_t>(1, (all + most_stages - 1) / most_stages);
  for (uint32_t from = 0; from < middle_;) {
    starts_.push_back(from);
    uint32_t best = middle_;
    for (uint32_t at = from + 1; at < middle_; ++at) {
      const int64_t inside = made[at] - made[from];
      if (inside < least) continue;
      if (best != middle_ && inside > 2 * least) break;
      if (best == middle_ || passing_[at] < passing_[best]) best = at;
    }
    if (made[best] == made[middle_]) best = middle_;  // nothing after it has bytes
    from = best;
  }
  starts_.push_back(middle_);
}

void StagedStep::assign_backward() {
  const auto stages = static_cast<uint32_t>(starts_.size() - 1);
  stage_of_.assign(log_.calls.size(), 0);
  for (uint32_t stage = 0; stage < stages; ++stage)
    std::fill(stage_of_.begin() + starts_[stage], stage_of_.begin() + starts_[stage + 1], stage);
  uint32_t at = stages == 0 ? 0 : stages - 1;
  for (uint32_t call = middle_; call < log_.calls.size(); ++call) {
    for (const uint32_t arg : log_.calls[call].args)
      if (producer_[arg] < middle_ && !kept_[root_[arg]]) at = std::min(at, stage_of_[producer_[arg]]);
    stage_of_[call] = at;
  }
}

// The most bytes of the stage's own results at one of its calls, each of which is freed after its last use.
int64_t StagedStep::peak_of(uint32_t stage, const std::vector<uint32_t>& last_use) const {
  const uint32_t from = starts_[stage], to = starts_[stage + 1];
  std::vector<int64_t> change(to - from + 1, 0);
  for (uint32_t call = from; call < to; ++call) {
    for (uint32_t k = 0; k < log_.calls[call].results.size(); ++k) {
      const uint32_t tensor = first_[call] + k;
      if (!is_made(tensor)) continue;
      change[call - from] += log_.bytes[tensor];
      const uint32_t last = std::max(last_use[tensor], call);
      if (last < to) change[last + 1 - from] -= log_.bytes[tensor];
    }
  }
  int64_t live = 0, peak = 0;
  for (uint32_t call = from; call < to; ++call) {
    live += change[call - from];
    peak = std::max(peak, live + log_.calls[call].own_bytes);
  }
  return peak;
}

void StagedStep::measure_stages() {
  const auto stages = static_cast<uint32_t>(starts_.size() - 1);
  chain_.resize(stages);
  kept_bytes_ = log_.constant_bytes();
  const std::vector<int64_t> live = live_bytes(middle_);
  for (uint32_t stage = 0; stage < stages; ++stage) {
    ChainStage& made = chain_[stage];
    made.passed = passing_[starts_[stage + 1]];
    made.saved = made.passed;
    made.forward_peak = peak_of(stage, last_forward_);
    made.saving_peak = peak_of(stage, last_use_);
  }
  for (uint32_t tensor = 0; tensor < root_.size(); ++tensor) {
    if (producer_[tensor] == kConstant || root_[tensor] != tensor || producer_[tensor] >= middle_) continue;
    if (kept_[tensor]) {
      if (held_[tensor] || last_use_[tensor] >= middle_) kept_bytes_ += log_.bytes[tensor];
      continue;
    }
    const uint32_t stage = stage_of_[producer_[tensor]];
    // What is passed on is in it already.
    if (last_use_[tensor] >= starts_[stage + 1] && last_forward_[tensor] < starts_[stage + 1])
      chain_[stage].saved += log_.bytes[tensor];
  }
  if (stages == 0) return;
  // What is left after a call: what it reads for the last time is not.
  std::vector<int64_t> ends(log_.calls.size(), 0);
  for (uint32_t tensor = 0; tensor < root_.size(); ++tensor) {
    if (root_[tensor] == tensor && producer_[tensor] != kConstant && producer_[tensor] >= middle_ && !held_[tensor])
      ends[last_use_[tensor]] += log_.bytes[tensor];
  }
  std::vector<bool> begun(stages, false);
  std::vector<int64_t> after(stages, 0);
  int64_t left = 0;
  for (uint32_t call = 0; call < log_.calls.size(); ++call) {
    const uint32_t at = stage_of_[call];
    ChainStage& stage = chain_[at];
    if (call < middle_) {
      stage.forward += log_.calls[call].cost;
      continue;
    }
    if (!begun[at]) stage.left = left;
    begun[at] = true;
    stage.backward += log_.calls[call].cost;
    stage.backward_peak = std::max(stage.backward_peak, live[call]);
    left = live[call] - log_.calls[call].own_bytes - ends[call];
    after[at] = left;
  }
  for (uint32_t stage = stages - 1; stage-- > 0;) {
    if (begun[stage]) continue;
    after[stage] = after[stage + 1];
    chain_[stage].left = chain_[stage].backward_peak = after[stage];
  }
}

std::vector<uint32_t> StagedStep::order(std::span<const ChainStep> steps) const {
  std::vector<uint32_t> order;
  std::vector<bool> executed(log_.calls.size(), false);
  const auto execute = [&](uint32_t call) {
    if (executed[call] && runs_once_[call]) return;
    executed[call] = true;
    order.push_back(call);
  };
  uint32_t done = middle_;  // the calls from `middle_` on, which are executed once and in their order
  for (const ChainStep& step : steps) {
    if (step.kind != ChainStep::Kind::kBackward) {
      for (uint32_t call = starts_[step.stage]; call < starts_[step.stage + 1]; ++call) execute(call);
      continue;
    }
    for (; done < log_.calls.size() && stage_of_[done] == step.stage; ++done) order.push_back(done);
  }
  for (; done < log_.calls.size(); ++done) order.push_back(done);
  return order;
}

}  // namespace tenon::compiler
