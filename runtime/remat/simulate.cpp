// A host for the core whose operators do nothing.
#include "runtime/remat/simulate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "support/try.h"

namespace tenon::runtime::remat {
namespace {

class Simulator final : public Host {
 public:
  Simulator(const StepLog& log, const CoreOptions& options, Position& position)
      : log_(log), position_(position), core_(options, *this) {
    position_ = {};
    tensors_.reserve(log.bytes.size());
  }

  Status compute(OperatorId op, bool again) override {
    if (!again) {
      calls_.resize(std::max<size_t>(calls_.size(), op + size_t{1}));
      calls_[op] = call_;
    }
    order_.push_back(calls_[op]);
    const int64_t own = log_.calls[calls_[op]].own_bytes;
    if (own == 0) return {};
    TENON_TRY(core_.set_other_bytes(own));
    return core_.set_other_bytes(0);
  }
  void free(StorageId) override {}

  Replay run() {
    const Status status = replay_events();
    const auto operators = static_cast<int64_t>(order_.size());
    Replay result{.clock = core_.clock(),
                  .peak = core_.peak(),
                  .operators = operators,
                  .evictions = core_.evictions(),
                  .recomputed = core_.extra_count(),
                  .events = position_.event,
                  .order = std::move(order_),
                  .failure = core_.failure(),
                  .problem = ""};
    if (!status) result.problem = status.error().what;
    return result;
  }

 private:
  Status replay_events() {
    std::vector<TensorId> args;
    for (const StepLog::Event& event : log_.events) {
      switch (event.kind) {
        case StepLog::Kind::kConstant: {
          TENON_TRY_ASSIGN(tensor, core_.constant(log_.bytes[event.index]));
          add(*tensor);
          break;
        }
        case StepLog::Kind::kCall: {
          const StepLog::Call& call = log_.calls[event.index];
          call_ = event.index;
          args.clear();
          for (const uint32_t arg : call.args) args.push_back(tensors_[arg]);
          TENON_TRY_ASSIGN(results, core_.call(args, call.results, call.cost));
          for (const TensorId result : *results) add(result);
          break;
        }
        case StepLog::Kind::kRetain: core_.retain(tensors_[event.index]); break;
        case StepLog::Kind::kRelease: core_.release(tensors_[event.index]); break;
        case StepLog::Kind::kKeep: core_.keep(tensors_[event.index]); break;
      }
      ++position_.event;
    }
    for (const uint32_t tensor : log_.results) TENON_TRY(core_.pin(tensors_[tensor]));
    return {};
  }

  void add(TensorId tensor) {
    const StorageId storage = core_.storage_of(tensor);
    if (core_.root_of(storage) == tensor) {
      position_.roots.resize(std::max<size_t>(position_.roots.size(), storage + size_t{1}));
      position_.roots[storage] = static_cast<uint32_t>(tensors_.size());
    }
    tensors_.push_back(tensor);
  }

  const StepLog& log_;
  Position& position_;
  Core core_;
  std::vector<TensorId> tensors_;  // of the core, by the log's numbers
  uint32_t call_ = 0;              // of the event that is replayed
  std::vector<uint32_t> calls_;    // by OperatorId: the log's call
  std::vector<uint32_t> order_;    // Replay::order
};

}  // namespace

Replay replay(const StepLog& log, const CoreOptions& options, Position* position) {
  Position unused;
  return Simulator(log, options, position != nullptr ? *position : unused).run();
}

Replay undisturbed(const StepLog& log) { return replay(log, {.policy = Policy::kLru}); }

CoreOptions options_for(const StepLog& log, const Replay& base, double ratio, double max_slowdown) {
  const auto time = static_cast<double>(log.cost());
  return {.budget = static_cast<int64_t>(static_cast<double>(base.peak) * ratio),
          .max_extra_cost = static_cast<int64_t>((max_slowdown - 1) * time),
          .max_extra_count = 100 * static_cast<int64_t>(log.calls.size())};
}

}  // namespace tenon::runtime::remat
