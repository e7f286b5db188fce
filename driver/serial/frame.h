// Frames as bytes on the line, for both ends: encoding, and a decoder that any byte sequence may be pushed into.
// The format is hw/spec/serial.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hw/spec/serial.h"

namespace tenon::driver::serial {

using Bytes = std::vector<uint8_t>;

struct Request {
  spec::serial::Operation operation = spec::serial::Operation::kHello;
  uint8_t sequence = 0;
  uint32_t address = 0;
  uint32_t data = 0;
  std::span<const uint8_t> payload = {};  // kWriteMemory: `data` words
};

struct Response {
  uint8_t sequence = 0;
  spec::serial::Result result = spec::serial::Result::kDone;
  Bytes data;  // a word, or those of kReadMemory
};

uint32_t crc(std::span<const uint8_t> bytes);
uint32_t load_word(std::span<const uint8_t> bytes);  // the first four bytes
void append_word(Bytes& bytes, uint32_t word);

Bytes encode(const Request& request);
Bytes encode(const Response& response);
// The response in a frame without its framing; empty if its length or CRC is wrong.
std::optional<Response> decode_response(std::span<const uint8_t> frame);

// Removes the framing: push() returns the contents of a frame at its end, which are empty for a frame with a wrong
// escape sequence or above kMaxFrame, that is a damaged one. Two ends in a row enclose no frame.
class Deframer {
 public:
  static constexpr size_t kMaxFrame = 2048;
  std::optional<Bytes> push(uint8_t byte);

 private:
  Bytes frame_;
  bool escaped_ = false, invalid_ = false;
};

}  // namespace tenon::driver::serial
