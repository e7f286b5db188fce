// A stream of messages with a limit on each wait: the same for both ends of a session.
#pragma once

#include <grpcpp/completion_queue.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "driver/remote/frame.h"

namespace tenon::driver::remote {

inline gpr_timespec deadline_after(std::chrono::nanoseconds limit) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(limit.count(), GPR_TIMESPAN));
}

// The completions of the operations of one call, each of which runs at most once at a time.
class Completions {
 public:
  enum Event : uint8_t { kStarted, kRead, kWritten, kFinished, kEnded, kEvents };

  Completions() = default;
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  // The call must have ended, or been cancelled: all of its operations complete.
  ~Completions() {
    queue_.Shutdown();
    void* tag = nullptr;
    for (bool good = false; queue_.Next(&tag, &good);) {
    }
  }

  grpc::CompletionQueue& queue() { return queue_; }
  bool pending(Event event) const { return states_[event].pending; }

  // The tag with which the operation is started.
  void* begin(Event event) {
    states_[event] = {.pending = true, .good = false};
    return &states_[event];
  }

  // Whether the operation succeeded; nothing where the limit has passed before its end. The operation continues then.
  std::optional<bool> wait(Event event, std::chrono::nanoseconds limit) {
    const gpr_timespec deadline = deadline_after(limit);
    while (states_[event].pending) {
      void* tag = nullptr;
      bool good = false;
      if (queue_.AsyncNext(&tag, &good, deadline) != grpc::CompletionQueue::GOT_EVENT) return std::nullopt;
      *static_cast<State*>(tag) = {.pending = false, .good = good};
    }
    return states_[event].good;
  }

 private:
  struct State {
    bool pending = false, good = false;
  };
  grpc::CompletionQueue queue_;
  std::array<State, kEvents> states_{};
};

// How an operation on a stream ended.
enum class Transfer : uint8_t { kGood, kLate, kEnded, kMalformed };

// Messages over `Rpc`, a client's or a server's stream of byte buffers.
template <class Rpc>
class MessageStream {
 public:
  MessageStream(Rpc& rpc, Completions& completions) : rpc_(rpc), completions_(completions) {}

  // Returns when the message is on its way; so a sender is never ahead of a receiver by more than the connection's
  // window. After kLate the stream is of no use.
  Transfer send(const google::protobuf::MessageLite& header, std::span<const std::byte> data,
                std::chrono::nanoseconds limit) {
    if (completions_.pending(Completions::kWritten)) return Transfer::kLate;
    rpc_.Write(to_frame(header, data), completions_.begin(Completions::kWritten));
    return outcome(completions_.wait(Completions::kWritten, limit));
  }

  // After kLate, the next receive() continues to wait for the same message.
  Transfer receive(google::protobuf::MessageLite& header, std::vector<std::byte>& data,
                   std::chrono::nanoseconds limit) {
    if (!std::exchange(reading_, true)) rpc_.Read(&frame_, completions_.begin(Completions::kRead));
    const Transfer result = outcome(completions_.wait(Completions::kRead, limit));
    if (result == Transfer::kLate) return result;
    reading_ = false;
    if (result == Transfer::kEnded) return result;
    return from_frame(frame_, header, data) ? Transfer::kGood : Transfer::kMalformed;
  }

 private:
  static Transfer outcome(std::optional<bool> good) {
    if (!good) return Transfer::kLate;
    return *good ? Transfer::kGood : Transfer::kEnded;
  }

  Rpc& rpc_;
  Completions& completions_;
  grpc::ByteBuffer frame_;
  bool reading_ = false;
};

}  // namespace tenon::driver::remote
