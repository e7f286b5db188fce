#include "driver/serial/frame.h"

#include <zlib.h>

#include <utility>

namespace tenon::driver::serial {
namespace {

namespace wire = spec::serial;

// The frame's contents, with the framing.
Bytes stuff(std::span<const uint8_t> contents) {
  Bytes out;
  out.reserve(contents.size() + contents.size() / 16 + 2);
  out.push_back(wire::kEnd);
  for (const uint8_t byte : contents) {
    if (byte == wire::kEnd || byte == wire::kEscape) {
      out.push_back(wire::kEscape);
      out.push_back(byte == wire::kEnd ? wire::kEscapedEnd : wire::kEscapedEscape);
    } else {
      out.push_back(byte);
    }
  }
  out.push_back(wire::kEnd);
  return out;
}

}  // namespace

uint32_t crc(std::span<const uint8_t> bytes) {
  return static_cast<uint32_t>(crc32(0, bytes.data(), static_cast<uInt>(bytes.size())));
}

uint32_t load_word(std::span<const uint8_t> bytes) {
  return uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 | uint32_t{bytes[3]} << 24;
}

void append_word(Bytes& bytes, uint32_t word) {
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(word >> shift));
}

Bytes encode(const Request& request) {
  Bytes contents = {static_cast<uint8_t>(request.operation), request.sequence};
  append_word(contents, request.address);
  append_word(contents, request.data);
  append_word(contents, crc(contents));
  if (!request.payload.empty()) {
    contents.insert(contents.end(), request.payload.begin(), request.payload.end());
    append_word(contents, crc(request.payload));
  }
  return stuff(contents);
}

Bytes encode(const Response& response) {
  Bytes contents = {response.sequence, static_cast<uint8_t>(response.result)};
  contents.insert(contents.end(), response.data.begin(), response.data.end());
  append_word(contents, crc(contents));
  return stuff(contents);
}

std::optional<Response> decode_response(std::span<const uint8_t> frame) {
  if (frame.size() < wire::kResponseBytes + wire::kWordBytes + wire::kCrcBytes) return {};
  const auto contents = frame.first(frame.size() - wire::kCrcBytes);
  if (load_word(frame.last(wire::kCrcBytes)) != crc(contents)) return {};
  return Response{.sequence = contents[0],
                  .result = static_cast<wire::Result>(contents[1]),
                  .data = Bytes(contents.begin() + wire::kResponseBytes, contents.end())};
}

std::optional<Bytes> Deframer::push(uint8_t byte) {
  if (byte == wire::kEnd) {
    Bytes frame = std::exchange(frame_, {});
    const bool invalid = std::exchange(invalid_, false), escaped = std::exchange(escaped_, false);
    if (frame.empty() && !invalid) return {};
    return invalid || escaped ? Bytes() : frame;
  }
  if (frame_.size() == kMaxFrame) invalid_ = true;
  if (invalid_) return {};
  if (escaped_) {
    escaped_ = false;
    if (byte != wire::kEscapedEnd && byte != wire::kEscapedEscape) invalid_ = true;
    frame_.push_back(byte == wire::kEscapedEnd ? wire::kEnd : wire::kEscape);
  } else if (byte == wire::kEscape) {
    escaped_ = true;
  } else {
    frame_.push_back(byte);
  }
  return {};
}

}  // namespace tenon::driver::serial
