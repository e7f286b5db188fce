// Requests to the bridge over a serial port, repeated until they are answered or a limit is reached.
//
// Every call ends: an attempt has the time that its bytes take on the line plus `timeout`, and a request kAttempts
// attempts. A block of memory is divided after a failed attempt, so that a line with many faults carries short frames.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "driver/serial/port.h"

namespace tenon::driver::serial {

struct LinkOptions {
  uint32_t baud = 115200;
  std::chrono::milliseconds timeout{300};
};

// What the bridge says of itself.
struct Identification {
  uint64_t memory_bytes = 0;
  bool simulated = false;
};

class Link {
 public:
  static constexpr int kAttempts = 12;

  static Expected<Link> open(const std::string& path, const LinkOptions& options, const std::string& uri);

  const Identification& identification() const { return identification_; }
  uint64_t repeated() const { return repeated_; }  // attempts after the first one

  Expected<uint32_t> read_register(uint32_t offset);
  Status write_register(uint32_t offset, uint32_t value);
  // Whole words at multiples of a word.
  Status read_memory(uint64_t address, std::span<std::byte> data);
  Status write_memory(uint64_t address, std::span<const std::byte> data);

 private:
  Link(Port port, LinkOptions options, std::string uri)
      : port_(std::move(port)), options_(options), uri_(std::move(uri)) {}
  Status identify();
  Expected<Bytes> request(Request request, int attempts = kAttempts);
  // One attempt: no value where the answer is missing or damaged.
  Expected<std::optional<Response>> attempt(const Request& request);
  std::chrono::nanoseconds line_time(size_t bytes) const;
  std::unexpected<Diagnostic> unanswered(int attempts) const;
  std::unexpected<Diagnostic> refused(const Request& request, spec::serial::Result result) const;
  // Calls transfer(word offset, words, attempts) over a range of words, with smaller blocks after failures.
  template <class Transfer>
  Status in_blocks(size_t words, const Transfer& transfer);

  Port port_;
  LinkOptions options_;
  std::string uri_;
  Identification identification_;
  Deframer deframer_;
  uint8_t sequence_ = 0;
  size_t block_words_ = spec::serial::kMaxWords;
  uint64_t repeated_ = 0, received_ = 0, frames_ = 0;
  bool lost_ = false;  // the last request stayed without an answer
  Bytes last_bytes_;   // of what arrived last, for the message about a device that speaks something else
};

}  // namespace tenon::driver::serial
