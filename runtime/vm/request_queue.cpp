#include "runtime/vm/request_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include "runtime/vm/state.h"
#include "support/try.h"

namespace tenon::runtime {

struct Ticket::Request {
  std::vector<Value> inputs;
  OnAnswer on_answer;
  std::chrono::steady_clock::time_point arrival = std::chrono::steady_clock::now();
  std::atomic<bool> cancelled = false;
  std::optional<Expected<std::vector<Value>>> answer;  // guarded by the queue's mutex; it is set once
  std::condition_variable answered;
};

struct Ticket::Queue {
  std::mutex mutex;  // guards all below
  std::deque<std::shared_ptr<Request>> waiting;
  bool ends = false;
  std::condition_variable changed;  // waiting, ends

  void answer(Request& request, Expected<std::vector<Value>> result) {
    try {
      if (request.on_answer) request.on_answer(result);
    } catch (...) {  // the answer stands, and whoever waits for it gets it
    }
    request.on_answer = {};
    request.inputs.clear();
    const std::lock_guard lock(mutex);
    request.answer = std::move(result);
    request.answered.notify_all();
  }
};

namespace {

std::unexpected<Diagnostic> ended(const Executable& executable) {
  return error("the session ended before the request had an answer", executable.name,
               "wait for the answers before the session is freed");
}

}  // namespace

Ticket::Ticket(std::shared_ptr<Request> request, std::shared_ptr<Queue> queue)
    : request_(std::move(request)), queue_(std::move(queue)) {}

bool Ticket::is_done() const {
  const std::lock_guard lock(queue_->mutex);
  return request_->answer.has_value();
}

Expected<std::vector<Value>> Ticket::wait() const {
  std::unique_lock lock(queue_->mutex);
  request_->answered.wait(lock, [&] { return request_->answer.has_value(); });
  return *request_->answer;
}

void Ticket::cancel() const {
  request_->cancelled = true;
  {
    const std::lock_guard lock(queue_->mutex);
    if (std::erase(queue_->waiting, request_) == 0) return;
  }
  queue_->answer(*request_, error("the request was cancelled before it began"));
}

RequestQueue::RequestQueue(Session::State& session)
    : session_(session), queue_(std::make_shared<Ticket::Queue>()), thread_([this] { work(); }) {}

RequestQueue::~RequestQueue() {
  std::deque<std::shared_ptr<Ticket::Request>> waiting;
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->ends = true;
    waiting.swap(queue_->waiting);
    for (const auto& [id, request] : begun_) request->cancelled = true;
  }
  queue_->changed.notify_all();
  for (const auto& request : waiting) queue_->answer(*request, ended(session_.executable));
  thread_.join();
}

Expected<Ticket> RequestQueue::submit(std::vector<Value> inputs, Ticket::OnAnswer on_answer) {
  auto request = std::make_shared<Ticket::Request>();
  request->inputs = std::move(inputs);
  request->on_answer = std::move(on_answer);
  {
    const std::lock_guard lock(queue_->mutex);
    const size_t most = session_.options.max_queue;
    if (queue_->waiting.size() >= most) {
      return error(fmt::format("the queue is full: {} requests wait", queue_->waiting.size()), session_.executable.name,
                   "submit it again after an answer, or raise max_queue");
    }
    queue_->waiting.push_back(request);
  }
  queue_->changed.notify_all();
  return Ticket(std::move(request), queue_);
}

std::optional<InstanceSource::Next> RequestQueue::next() {
  const std::lock_guard lock(queue_->mutex);
  if (queue_->waiting.empty()) return std::nullopt;
  const auto request = queue_->waiting.front();
  const uint64_t id = ++last_id_;
  begun_.emplace(id, request);
  queue_->waiting.pop_front();
  Next next{.id = id, .inputs = &request->inputs, .stop = {.cancel_one = &request->cancelled}};
  const auto limit = session_.options.max_time;
  if (limit.count() > 0) next.stop.deadline = std::chrono::steady_clock::now() + limit;
  return next;
}

void RequestQueue::finish(uint64_t id, Expected<std::vector<Value>> result) {
  std::shared_ptr<Ticket::Request> request;
  {
    const std::lock_guard lock(queue_->mutex);
    const auto found = begun_.find(id);
    request = std::move(found->second);
    begun_.erase(found);
    if (!result && queue_->ends) result = ended(session_.executable);
  }
  if (together_) session_.buffers.age();  // else the run has done so
  queue_->answer(*request, std::move(result));
}

void RequestQueue::fail_begun(const Diagnostic& diagnostic) {
  while (!begun_.empty()) finish(begun_.begin()->first, std::unexpected(diagnostic));
}

void RequestQueue::work() {
  const SessionOptions& options = session_.options;
  const size_t most = std::max<size_t>(1, options.max_batch);
  const size_t enough = std::min(most, std::max<size_t>(1, options.max_queue));  // more do not wait
  together_ = most > 1 && session_.runs_together();
  for (;;) {
    {
      std::unique_lock lock(queue_->mutex);
      const auto& waiting = queue_->waiting;
      queue_->changed.wait(lock, [&] { return queue_->ends || !waiting.empty(); });
      if (together_ && options.max_wait.count() > 0 && !queue_->ends) {
        constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);  // a sum that no clock exceeds
        queue_->changed.wait_until(lock, waiting.front()->arrival + std::min(kLongest, options.max_wait),
                                   [&] { return queue_->ends || waiting.empty() || waiting.size() >= enough; });
      }
      if (queue_->ends) return;
    }
    try {
      if (together_) {
        session_.serve(*this, most);
      } else if (const auto request = next()) {
        finish(request->id, session_.run(*request->inputs, request->stop.cancel_one));
      }
    } catch (const std::bad_alloc&) {
      fail_begun({"there is not enough memory for the requests that run", session_.executable.name,
                  "lower max_batch, or submit smaller requests", Fault::kInternal});
    } catch (const std::exception& e) {
      fail_begun({fmt::format("internal error: {}", e.what()), session_.executable.name, {}, Fault::kInternal});
    }
  }
}

}  // namespace tenon::runtime
