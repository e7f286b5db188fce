// Clients that a server refuses for want of its token: each is logged, and who guesses is slowed down.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace tenon::driver::remote {

// Thread-safe. A peer is as gRPC has it, "ipv4:10.0.0.7:53412"; its port is no part of its address.
class Refusals {
 public:
  static constexpr uint64_t kPrompt = 10;                   // refusals of an address that are answered at once
  static constexpr std::chrono::milliseconds kDelay{1000};  // of the answer to each later one
  static constexpr uint64_t kMostDelayed = 16;              // answers at a time: each holds one of the connections

  // An answer that must wait; it counts as delayed while it lives.
  struct Late {
    explicit Late(Refusals& owner) : owner(owner) {}
    Late(const Late&) = delete;
    Late& operator=(const Late&) = delete;
    ~Late();
    Refusals& owner;
    std::chrono::milliseconds delay = kDelay;
  };

  // Whether so many answers are delayed that one more from an address that was refused often must not be.
  bool is_crowded(std::string_view peer) const;
  // Logs the refusal, with its count, to standard error; never the token. Null: the answer need not wait.
  std::unique_ptr<Late> add(std::string_view peer, std::string_view reason);
  // The address has the token.
  void forget(std::string_view peer);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t, std::less<>> counts_;  // by address
  uint64_t delayed_ = 0;
};

}  // namespace tenon::driver::remote
