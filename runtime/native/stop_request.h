// Whether work is to end before it is done: a run that was cancelled, or that has a time limit.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

namespace tenon::runtime {

struct StopRequest {
  const std::atomic<bool>* cancel = nullptr;      // true: it was cancelled
  const std::atomic<bool>* cancel_one = nullptr;  // the same of one of several instances
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();

  bool is_cancelled() const { return is_set(cancel) || is_set(cancel_one); }
  bool is_late() const {
    return deadline != std::chrono::steady_clock::time_point::max() && std::chrono::steady_clock::now() > deadline;
  }
  bool is_reached() const { return is_cancelled() || is_late(); }
  // The request of a run and that of one of its instances.
  StopRequest with(const StopRequest& one) const {
    return {.cancel = cancel, .cancel_one = one.cancel_one, .deadline = std::min(deadline, one.deadline)};
  }

 private:
  static bool is_set(const std::atomic<bool>* flag) { return flag && flag->load(std::memory_order_relaxed); }
};

}  // namespace tenon::runtime
