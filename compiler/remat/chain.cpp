#include "compiler/remat/chain.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace tenon::compiler {

ChainPlans::ChainPlans(std::vector<ChainStage> stages, int64_t memory, int64_t slots)
    : stages_(std::move(stages)),
      count_(static_cast<int64_t>(stages_.size())),
      unit_(std::max<int64_t>(1, (memory + slots - 1) / slots)),
      slots_(memory / unit_),
      costs_(static_cast<size_t>(count_ * count_ * (slots_ + 1)), kNoPlan),
      beginnings_(costs_.size(), 0) {
  assert(memory >= 0 && slots > 0 && count_ <= UINT16_MAX);
  for (int64_t length = 0; length < count_; ++length) {
    for (int64_t first = 0; first + length < count_; ++first) solve(first, first + length);
  }
}

// The costs of the stages from `first` to `last` for each memory, which excludes what stage `first` reads.
void ChainPlans::solve(int64_t first, int64_t last) {
  const auto stage = [&](int64_t i) -> const ChainStage& { return stages_[static_cast<size_t>(i)]; };
  const int64_t left = stage(last).left, saved = slots_of(stage(first).saved),
                least_saving = slots_of(
                    std::max(left + stage(first).saving_peak, stage(first).saved + stage(first).backward_peak));
  const auto improve = [&](int64_t slots, int64_t before, int64_t later, int64_t earlier, size_t beginning) {
    if (later == kNoPlan || earlier == kNoPlan) return;
    int64_t& known = costs_[at(first, last, slots)];
    if (before + later + earlier >= known) return;
    known = before + later + earlier;
    beginnings_[at(first, last, slots)] = static_cast<uint16_t>(beginning);
  };
  const int64_t own = stage(first).forward + stage(first).backward;
  for (int64_t slots = least_saving; slots <= slots_; ++slots) {
    if (first == last) improve(slots, own, 0, 0, 0);
    else if (slots >= saved) improve(slots, own, costs_[at(first + 1, last, slots - saved)], 0, 0);
  }
  int64_t forward = 0, peak = 0;
  for (int64_t next = first + 1; next <= last; ++next) {
    const ChainStage& before = stage(next - 1);
    const int64_t reads = next - 1 > first ? stage(next - 2).passed : 0;
    forward += before.forward;
    peak = std::max(peak, left + reads + before.forward_peak);
    const int64_t passed = slots_of(before.passed);
    for (int64_t slots = std::max(slots_of(peak), passed); slots <= slots_; ++slots) {
      improve(slots, forward, costs_[at(next, last, slots - passed)], costs_[at(first, next - 1, slots)],
              static_cast<size_t>(next - first));
    }
  }
}

std::optional<int64_t> ChainPlans::cost(int64_t bytes) const {
  if (bytes < 0) return std::nullopt;
  if (count_ == 0) return 0;
  const int64_t found = costs_[at(0, count_ - 1, std::min(bytes / unit_, slots_))];
  return found == kNoPlan ? std::nullopt : std::optional(found);
}

std::vector<ChainStep> ChainPlans::steps(int64_t bytes) const {
  assert(cost(bytes));
  std::vector<ChainStep> steps;
  if (count_ > 0) append(0, count_ - 1, std::min(bytes / unit_, slots_), steps);
  return steps;
}

void ChainPlans::append(int64_t first, int64_t last, int64_t slots, std::vector<ChainStep>& steps) const {
  const int64_t forward = beginnings_[at(first, last, slots)];
  if (forward == 0) {
    steps.push_back({ChainStep::Kind::kSave, static_cast<uint32_t>(first)});
    if (first < last) append(first + 1, last, slots - slots_of(stages_[static_cast<size_t>(first)].saved), steps);
    steps.push_back({ChainStep::Kind::kBackward, static_cast<uint32_t>(first)});
    return;
  }
  for (int64_t i = first; i < first + forward; ++i)
    steps.push_back({ChainStep::Kind::kForward, static_cast<uint32_t>(i)});
  const int64_t next = first + forward;
  append(next, last, slots - slots_of(stages_[static_cast<size_t>(next - 1)].passed), steps);
  append(first, next - 1, slots, steps);
}

}  // namespace tenon::compiler
