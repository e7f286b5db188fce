// A host for the core whose operators do nothing.
#include "runtime/remat/simulate.h"

#include <utility>
#include <vector>

#include "support/try.h"

namespace tenon::runtime::remat {
namespace {

class Simulator final : public Host {
 public:
  Simulator(const StepLog& log, const CoreOptions& options) : log_(log), core_(options, *this) {
    tensors_.reserve(log.bytes.size());
  }

  Status compute(OperatorId) override {
    ++operators_;
    return {};
  }
  void free(StorageId) override {}

  Replay run() {
    const Status status = replay_events();
    Replay result{core_.clock(), core_.peak(), operators_, core_.evictions(), core_.extra_count(), core_.failure(), ""};
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
          tensors_.push_back(*tensor);
          break;
        }
        case StepLog::Kind::kCall: {
          const StepLog::Call& call = log_.calls[event.index];
          args.clear();
          for (const uint32_t arg : call.args) args.push_back(tensors_[arg]);
          TENON_TRY_ASSIGN(results, core_.call(args, call.results, call.cost));
          tensors_.insert(tensors_.end(), results->begin(), results->end());
          break;
        }
        case StepLog::Kind::kRetain: core_.retain(tensors_[event.index]); break;
        case StepLog::Kind::kRelease: core_.release(tensors_[event.index]); break;
      }
    }
    for (const uint32_t tensor : log_.results) TENON_TRY(core_.pin(tensors_[tensor]));
    return {};
  }

  const StepLog& log_;
  Core core_;
  std::vector<TensorId> tensors_;  // of the core, by the log's numbers
  int64_t operators_ = 0;
};

}  // namespace

Replay replay(const StepLog& log, const CoreOptions& options) { return Simulator(log, options).run(); }

Replay undisturbed(const StepLog& log) { return replay(log, {.policy = Policy::kLru}); }

CoreOptions options_for(const StepLog& log, const Replay& base, double ratio, double max_slowdown) {
  const auto time = static_cast<double>(log.cost());
  return {.budget = static_cast<int64_t>(static_cast<double>(base.peak) * ratio),
          .max_extra_cost = static_cast<int64_t>((max_slowdown - 1) * time),
          .max_extra_count = 100 * static_cast<int64_t>(log.calls.size())};
}

}  // namespace tenon::runtime::remat
