// Whether work is to end before it is done: a run that was cancelled, or that has a time limit.
#pragma once

#include <atomic>
#include <chrono>

namespace tenon::runtime {

struct StopRequest {
  const std::atomic<bool>* cancel = nullptr;  // true: it was cancelled
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();

  bool is_cancelled() const { return cancel && cancel->load(std::memory_order_relaxed); }
  bool is_late() const {
    return deadline != std::chrono::steady_clock::time_point::max() && std::chrono::steady_clock::now() > deadline;
  }
  bool is_reached() const { return is_cancelled() || is_late(); }
};

}  // namespace tenon::runtime
