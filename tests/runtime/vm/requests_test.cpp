// Requests of a session: each has the answer that it has alone, whenever it joins, and whatever becomes of the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "support/random.h"
#include "tests/runtime/vm/steps_executable.h"

namespace tenon::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A gate in front of a kernel, whose calls wait until it opens.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // Waits until a call is at the gate.
  void wait_for_call() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int arrived_ = 0;
};

// The kernels of a test, of which each call passes the gate.
KernelLookup gated(KernelCount& count, Gate& gate) {
  return [&gate, kernels = step_kernels(count)](std::string_view name) -> CpuKernel {
    return [&gate, kernel = kernels(name)](const Attrs& attrs, std::span<const Tensor> args) {
      gate.pass();
      return kernel(attrs, args);
    };
  };
}

std::vector<Value> until(float first, float second) { return {row_of({first, second})}; }
std::vector<Value> endless() { return until(-1e9F, -1e9F); }  // 1 added to it is lost

TEST(Requests, EachHasTheAnswerOfItsRunAlone) {
  Random random(7);
  std::vector<std::vector<Value>> inputs;
  for (int i = 0; i < 150; ++i) {
    const float x = i % 29 == 3 ? kTooLarge + 1 : static_cast<float>(random.between(-20, 20));
    inputs.push_back(i % 29 == 3 ? until(-2, x) : until(x, static_cast<float>(i % 50)));
  }
  const Executable e = until_executable();
  for (const size_t most : {size_t{1}, size_t{2}, size_t{7}, size_t{64}}) {
    KernelCount count;
    auto session = Session::create(e, {.kernels = step_kernels(count), .max_batch = most});
    ASSERT_TRUE(session) << session.error().str();
    std::vector<size_t> order(inputs.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (size_t i = order.size(); i-- > 1;)
      std::swap(order[i], order[static_cast<size_t>(random.between(0, static_cast<int64_t>(i)))]);
    std::vector<std::optional<Ticket>> tickets(inputs.size());
    for (const size_t i : order) {
      auto ticket = session->submit(inputs[i]);
      ASSERT_TRUE(ticket) << ticket.error().str();
      tickets[i] = *ticket;
    }
    size_t failed = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto answer = tickets[i]->wait(), alone = session->run_values(inputs[i]);
      EXPECT_TRUE(tickets[i]->is_done());
      ASSERT_EQ(answer.has_value(), alone.has_value()) << i;
      if (alone) {
        EXPECT_EQ((*answer)[0].tensor(), (*alone)[0].tensor());
        continue;
      }
      EXPECT_EQ(answer.error().str(), alone.error().str());
      ++failed;
    }
    EXPECT_EQ(failed, 6u);
    EXPECT_LE(count.most_rows, static_cast<int64_t>(most));
  }
}

TEST(Requests, ALateOneJoinsThoseThatRun) {
  const Executable e = until_executable();
  KernelCount count;
  Gate gate;
  auto session = Session::create(e, {.kernels = gated(count, gate)});
  ASSERT_TRUE(session) << session.error().str();
  const auto first = session->submit(until(-50, 0));
  gate.wait_for_call();
  const auto late = session->submit(until(-10, 1)), short_one = session->submit(until(3, 4));
  gate.open();
  EXPECT_THAT((*late->wait())[0].tensor().data<float>(), ElementsAre(3, 14));
  EXPECT_THAT((*short_one->wait())[0].tensor().data<float>(), ElementsAre(3, 4));
  EXPECT_THAT((*first->wait())[0].tensor().data<float>(), ElementsAre(3, 53));
  // Steps of the late one are rows of calls of the first one.
  EXPECT_EQ(count.calls, 53);
  EXPECT_EQ(count.most_rows, 2);
}

TEST(Requests, AnAnswerLeavesBeforeThoseThatRunLonger) {
  const Executable e = until_executable();
  KernelCount count;
  Gate gate;
  auto session = Session::create(e, {.kernels = gated(count, gate)});
  ASSERT_TRUE(session) << session.error().str();
  std::mutex mutex;
  std::vector<int> order;
  const auto note = [&](int which) {
    return [&, which](const Expected<std::vector<Value>>& answer) {
      EXPECT_TRUE(answer);
      const std::lock_guard lock(mutex);
      order.push_back(which);
    };
  };
  std::vector<Ticket> tickets{*session->submit(until(-50, 0), note(0)), *session->submit(until(-5, 0), note(1)),
                              *session->submit(until(-20, 0), note(2))};
  gate.open();
  for (const Ticket& ticket : tickets) EXPECT_TRUE(ticket.wait());
  EXPECT_THAT(order, ElementsAre(1, 2, 0));
}

TEST(Requests, AFullQueueRefuses) {
  const Executable e = until_executable();
  KernelCount count;
  Gate gate;
  auto session = Session::create(e, {.kernels = gated(count, gate), .max_queue = 2});
  ASSERT_TRUE(session) << session.error().str();
  std::vector<Ticket> tickets{*session->submit(until(0, 0))};
  gate.wait_for_call();
  tickets.push_back(*session->submit(until(1, 0)));
  tickets.push_back(*session->submit(until(2, 0)));
  const auto refused = session->submit(until(3, 0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().str(),
      "until: error: the queue is full: 2 requests wait\n  help: submit it again after an answer, or raise max_queue");
  gate.open();
  for (const Ticket& ticket : tickets) EXPECT_TRUE(ticket.wait());
  EXPECT_TRUE(session->submit(until(3, 0))->wait());
}

TEST(Requests, InputsThatDoNotFitAreRefused) {
  const Executable e = until_executable();
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  const auto refused = session->submit({});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("0 inputs were given"));
}

TEST(Requests, ACancelledOneEndsAndTheOthersGoOn) {
  const Executable e = until_executable();
  for (const size_t most : {size_t{1}, size_t{3}}) {
    KernelCount count;
    Gate gate;
    auto session = Session::create(e, {.kernels = gated(count, gate), .max_batch = most});
    ASSERT_TRUE(session) << session.error().str();
    const auto running = session->submit(endless());
    gate.wait_for_call();
    const auto waiting = session->submit(until(1, 0)), other = session->submit(until(0, 0));
    EXPECT_FALSE(waiting->is_done());
    waiting->cancel();
    EXPECT_TRUE(waiting->is_done());
    EXPECT_THAT(waiting->wait().error().str(), HasSubstr("the request was cancelled before it began"));
    running->cancel();
    gate.open();
    EXPECT_THAT(running->wait().error().str(), HasSubstr("the run was cancelled"));
    EXPECT_THAT((*other->wait())[0].tensor().data<float>(), ElementsAre(3, 3));
    other->cancel();  // changes nothing
    EXPECT_TRUE(other->wait());
  }
}

TEST(Requests, LimitsAreThoseOfARequest) {
  const Executable e = until_executable();
  KernelCount count;
  auto session = Session::create(
      e, {.kernels = step_kernels(count), .max_steps = 100'000, .max_time = std::chrono::milliseconds(200)});
  ASSERT_TRUE(session) << session.error().str();
  const auto longest = session->submit(endless()), other = session->submit(until(0, 0));
  EXPECT_TRUE(other->wait());
  EXPECT_THAT(longest->wait().error().str(), HasSubstr("the run takes more than "));
}

TEST(Requests, AnEndedSessionAnswersThemAll) {
  const Executable e = until_executable();
  for (const size_t most : {size_t{1}, size_t{2}}) {
    KernelCount count;
    Gate gate;
    std::optional<Session> session(std::move(*Session::create(e, {.kernels = gated(count, gate), .max_batch = most})));
    std::vector<Ticket> tickets;
    for (int i = 0; i < 5; ++i) tickets.push_back(*session->submit(endless()));
    gate.wait_for_call();
    std::thread waits([&] { EXPECT_FALSE(tickets[4].wait()); });
    gate.open();
    session.reset();
    waits.join();
    for (const Ticket& ticket : tickets) {
      ASSERT_TRUE(ticket.is_done());
      EXPECT_THAT(ticket.wait().error().str(), HasSubstr("the session ended before the request had an answer"));
      ticket.cancel();
    }
  }
}

TEST(Requests, WaitsMakeLargerBatches) {
  const Executable e = until_executable();
  KernelCount count;
  auto session =
      Session::create(e, {.kernels = step_kernels(count), .max_batch = 4, .max_wait = std::chrono::hours(1)});
  ASSERT_TRUE(session) << session.error().str();
  std::vector<Ticket> tickets;
  for (int i = 0; i < 4; ++i) tickets.push_back(*session->submit(until(0, static_cast<float>(i))));
  for (const Ticket& ticket : tickets) EXPECT_TRUE(ticket.wait());
  EXPECT_EQ(count.calls, 3);
  EXPECT_EQ(count.most_rows, 4);
}

TEST(Requests, SeveralThreadsSubmitAndCancel) {
  const Executable e = until_executable();
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count), .max_batch = 7, .max_queue = 100'000});
  ASSERT_TRUE(session) << session.error().str();
  std::atomic<int> answered = 0;
  const auto client = [&](int thread) {
    for (int i = 0; i < 200; ++i) {
      const auto ticket = session->submit(until(static_cast<float>(-(i % 9)), 0));
      ASSERT_TRUE(ticket) << ticket.error().str();
      if (i % 5 == thread) ticket->cancel();
      const auto answer = ticket->wait();
      if (i % 5 != thread) {
        ASSERT_TRUE(answer) << answer.error().str();
      } else if (!answer) {
        EXPECT_NE(answer.error().str().find("cancelled"), std::string::npos) << answer.error().str();
      }
      if (answer) {
        EXPECT_EQ((*answer)[0].tensor().data<float>()[0], 3);
      }
      ++answered;
    }
  };
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(client, i);
  for (std::thread& thread : clients) thread.join();
  EXPECT_EQ(answered, 800);
}

}  // namespace
}  // namespace tenon::runtime
