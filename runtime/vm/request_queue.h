// The requests of a session (Session::submit): a queue, and the thread that runs them.
//
// Semantics: requests begin in the order in which they came. Where the executable has units, up to `max_batch` of them
// run together, and a request joins between two flushes of those that run; otherwise they run one by one. The thread
// begins with the first request. The destructor ends the requests that have no answer, with an error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/vm/instances.h"
#include "runtime/vm/session.h"

namespace tenon::runtime {

class RequestQueue : private InstanceSource {
 public:
  explicit RequestQueue(Session::State& session);
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;
  ~RequestQueue() override;

  // A request with inputs that have passed check_inputs(). An error where the queue is full.
  Expected<Ticket> submit(std::vector<Value> inputs, Ticket::OnAnswer on_answer);

 private:
  std::optional<Next> next() override;
  void finish(uint64_t id, Expected<std::vector<Value>> result) override;
  void work();
  // Answers the requests that have begun.
  void fail_begun(const Diagnostic& diagnostic);

  Session::State& session_;
  std::shared_ptr<Ticket::Queue> queue_;                                  // which tickets have too
  std::unordered_map<uint64_t, std::shared_ptr<Ticket::Request>> begun_;  // and not ended; guarded by the queue's mutex
  uint64_t last_id_ = 0;                                                  // of the thread
  bool together_ = false;                                                 // likewise: requests join batches
  std::thread thread_;
};

}  // namespace tenon::runtime
