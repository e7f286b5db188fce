#include "compiler/remat/segments.h"

#include <algorithm>
#include <utility>

namespace tenon::compiler {
namespace {

using runtime::remat::StepLog;

constexpr uint32_t kNone = UINT32_MAX;

class Segments {
 public:
  explicit Segments(const StepLog& log)
      : log_(log),
        first_(log.first_results()),
        producer_(log.bytes.size(), kNone),
        last_use_(log.bytes.size(), 0),
        last_read_(log.bytes.size(), 0),
        kept_(log.bytes.size(), false) {
    const auto end = static_cast<uint32_t>(log.calls.size());
    root_.resize(log.bytes.size());
    for (uint32_t tensor = 0; tensor < root_.size(); ++tensor) root_[tensor] = tensor;
    for (uint32_t call = 0; call < end; ++call) {
      for (const uint32_t arg : log.calls[call].args) last_use_[root_[arg]] = last_read_[arg] = call;
      for (uint32_t k = 0; k < log.calls[call].results.size(); ++k) {
        const uint32_t tensor = first_[call] + k;
        producer_[tensor] = call;
        if (const auto view = log.calls[call].results[k].view_of) root_[tensor] = root_[log.calls[call].args[*view]];
        last_use_[root_[tensor]] = std::max(last_use_[root_[tensor]], call);
      }
    }
    for (const uint32_t tensor : log.results) keep(tensor, end);
    for (const StepLog::Event& event : log.events)
      if (event.kind == StepLog::Kind::kKeep) keep(event.index, last_use_[root_[event.index]]);
    const std::vector<int64_t> live = live_bytes(0);
    middle_ = static_cast<uint32_t>(std::ranges::max_element(live) - live.begin());
  }

  std::vector<uint32_t> order(int64_t budget) {
    cut(budget);
    keep_what_passes();
    std::vector<uint32_t> order;
    for (uint32_t call = 0; call < middle_; ++call) order.push_back(call);
    // Of a dropped tensor: whether it has been computed again.
    again_.assign(log_.bytes.size(), false);
    const auto end = static_cast<uint32_t>(log_.calls.size());
    for (uint32_t call = middle_; call < end; ++call) {
      for (const uint32_t arg : log_.calls[call].args)
        if (is_dropped(arg) && !again_[arg]) compute_again(segment_[producer_[arg]], call, order);
      order.push_back(call);
    }
    return order;
  }

 private:
  void keep(uint32_t tensor, uint32_t until) {
    kept_[tensor] = true;
    last_use_[root_[tensor]] = std::max(last_use_[root_[tensor]], until);
  }

  // The bytes of results that calls from `from` on make, by the call at which they are there.
  std::vector<int64_t> live_bytes(uint32_t from) const {
    std::vector<int64_t> live(log_.calls.size() + 2, 0);
    for (uint32_t tensor = 0; tensor < root_.size(); ++tensor) {
      if (producer_[tensor] == kNone || producer_[tensor] < from || root_[tensor] != tensor) continue;
      live[producer_[tensor]] += log_.bytes[tensor];
      live[last_use_[tensor] + 1] -= log_.bytes[tensor];
    }
    for (size_t call = 1; call < live.size(); ++call) live[call] += live[call - 1];
    for (size_t call = 0; call < log_.calls.size(); ++call) live[call] += log_.calls[call].own_bytes;
    return live;
  }

  // The bytes that pass each call before `middle_`: made before it, and read by it or by a later call before `middle_`.
  std::vector<int64_t> passing_bytes() const {
    std::vector<int64_t> passing(middle_ + 2, 0);
    std::vector<uint32_t> last(log_.bytes.size(), 0);
    for (uint32_t call = 0; call < middle_; ++call)
      for (const uint32_t arg : log_.calls[call].args) last[root_[arg]] = call;
    for (uint32_t tensor = 0; tensor < root_.size(); ++tensor) {
      if (producer_[tensor] == kNone || root_[tensor] != tensor || last[tensor] <= producer_[tensor]) continue;
      passing[producer_[tensor] + 1] += log_.bytes[tensor];
      passing[last[tensor] + 1] -= log_.bytes[tensor];
    }
    for (size_t call = 1; call < passing.size(); ++call) passing[call] += passing[call - 1];
    return passing;
  }

  // Cuts the calls before `middle_` into segments.
  void cut(int64_t budget) {
    segment_.assign(middle_, kNone);
    starts_.clear();
    // What the rest of the step holds beside a segment when it reads a result of the call.
    const std::vector<int64_t> rest = live_bytes(middle_), passing = passing_bytes();
    std::vector<int64_t> beside(middle_, 0);
    for (auto call = static_cast<uint32_t>(log_.calls.size()); call-- > middle_;) {
      for (const uint32_t arg : log_.calls[call].args)
        if (producer_[arg] < middle_) beside[producer_[arg]] = rest[call];
    }
    int64_t kept = log_.constant_bytes();
    uint32_t from = 0;
    while (from < middle_) {
      starts_.push_back(from);
      const uint32_t to = end_of_segment(from, budget - kept, beside, passing);
      for (uint32_t call = from; call < to; ++call) segment_[call] = static_cast<uint32_t>(starts_.size() - 1);
      kept += passing[to];
      from = to;
    }
    starts_.push_back(middle_);
  }

  // The call before which the segment from `from` on ends, with so many bytes for it and what is beside it.
  uint32_t end_of_segment(uint32_t from, int64_t room, const std::vector<int64_t>& beside,
                          const std::vector<int64_t>& passing) const {
    int64_t made = 0, most_beside = 0;
    std::vector<int64_t> made_before;  // by call from `from` on
    uint32_t call = from;
    for (; call < middle_; ++call) {
      made_before.push_back(made);
      most_beside = std::max(most_beside, beside[call]);
      if (call > from && made + most_beside > room) break;
      for (uint32_t k = 0; k < log_.calls[call].results.size(); ++k)
        if (!log_.calls[call].results[k].view_of) made += log_.bytes[first_[call] + k];
    }
    if (call == middle_) return middle_;
    uint32_t best = call;
    for (uint32_t at = call; at > from && 2 * made_before[at - from] >= made; --at)
      if (passing[at] < passing[best]) best = at;
    return best;
  }

  void keep_what_passes() {
    passes_ = kept_;
    for (uint32_t call = 0; call < middle_; ++call)
      for (const uint32_t arg : log_.calls[call].args)
        if (producer_[arg] != kNone && segment_[producer_[arg]] != segment_[call]) passes_[arg] = true;
  }

  bool is_dropped(uint32_t tensor) const {
    return producer_[tensor] != kNone && producer_[tensor] < middle_ && !passes_[tensor];
  }

  // Appends the calls of the segment whose results are read from call `reader` on, and those that these need.
  void compute_again(uint32_t segment, uint32_t reader, std::vector<uint32_t>& order) {
    const uint32_t from = starts_[segment], to = starts_[segment + 1];
    std::vector<bool> needed(to - from, false);
    for (uint32_t call = to; call-- > from;) {
      bool wanted = needed[call - from];
      for (uint32_t k = 0; k < log_.calls[call].results.size(); ++k) {
        const uint32_t tensor = first_[call] + k;
        wanted |= is_dropped(tensor) && !again_[tensor] && last_read_[tensor] >= reader;
      }
      if (!wanted) continue;
      needed[call - from] = true;
      for (const uint32_t arg : log_.calls[call].args)
        if (is_dropped(arg) && !again_[arg]) needed[producer_[arg] - from] = true;
    }
    for (uint32_t call = from; call < to; ++call) {
      if (!needed[call - from]) continue;
      order.push_back(call);
      for (uint32_t k = 0; k < log_.calls[call].results.size(); ++k) again_[first_[call] + k] = true;
    }
  }

  const StepLog& log_;
  std::vector<uint32_t> first_, root_, producer_;  // producer_: by tensor, its call; kNone: a constant
  std::vector<uint32_t> last_use_;                 // by root: the last call that reads its storage
  std::vector<uint32_t> last_read_;                // by tensor: the last call that reads it
  std::vector<bool> kept_;                         // tensors that are results, or that cannot be computed again
  uint32_t middle_ = 0;                            // the calls before it are cut
  std::vector<uint32_t> segment_, starts_;         // segment_: by call before middle_
  std::vector<bool> passes_, again_;
};

}  // namespace

std::vector<uint32_t> segmented_order(const StepLog& log, int64_t budget) { return Segments(log).order(budget); }

}  // namespace tenon::compiler
