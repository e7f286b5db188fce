// The handle of a request that a session was given (Session::submit).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/executable/value.h"
#include "support/diagnostic.h"

namespace tenon::runtime {

// All functions may be called from several threads, and after the session has ended.
class Ticket {
 public:
  struct Request;  // internal to this folder
  struct Queue;
  // Is called once with the answer, by the session's thread of requests, or by the one that cancels or ends the
  // session; is_done() is still false. It must not wait for answers nor end the session, and what it throws is dropped.
  using OnAnswer = std::function<void(const Expected<std::vector<Value>>& answer)>;

  Ticket(std::shared_ptr<Request> request, std::shared_ptr<Queue> queue);

  // Whether the request has its answer.
  bool is_done() const;
  // Waits for the answer: the results, or the error that the run has alone.
  Expected<std::vector<Value>> wait() const;
  // Ends the request with an error, unless it has its answer: at once where it has not begun, otherwise at its next
  // check of limits. The others go on.
  void cancel() const;

 private:
  std::shared_ptr<Request> request_;
  std::shared_ptr<Queue> queue_;
};

}  // namespace tenon::runtime
