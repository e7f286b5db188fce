#include "driver/serial/link.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "support/clock.h"
#include "support/try.h"

namespace tenon::driver::serial {
namespace {

namespace wire = spec::serial;
using std::chrono::nanoseconds;
using wire::Operation;
using wire::Result;

constexpr size_t kSmallestBlock = 4;  // words
constexpr int kAttemptsOfBlock = 2;   // before the block is divided
constexpr size_t kShownBytes = 16;    // of a foreign device's output
constexpr uint64_t kBitsOfByte = 10;  // with start and stop bit

constexpr char kDeadHelp[] =
    "check the cable and that the board has a bitstream of Tenon (tenon board flash), and use the baud rate that it "
    "was "
    "built for: ?baud=115200";

}  // namespace

nanoseconds Link::line_time(size_t bytes) const {
  return nanoseconds(bytes * kBitsOfByte * 1'000'000'000 / options_.baud);
}

Expected<Link> Link::open(const std::string& path, const LinkOptions& options, const std::string& uri) {
  TENON_TRY_ASSIGN(port, Port::open(path, options.baud, uri));
  Link link(std::move(*port), options, uri);
  TENON_TRY(link.identify());
  return link;
}

Status Link::identify() {
  // Any start is correct; a random one differs from that of an earlier client, whose late responses may still arrive.
  sequence_ = static_cast<uint8_t>(std::random_device()());
  port_.flush();
  TENON_TRY_ASSIGN(data, request({.operation = Operation::kHello}));
  const uint32_t word = load_word(*data);
  if (word >> 16 != wire::kMagic || (word >> 8 & 0xff) != wire::kVersion) {
    return error(fmt::format("the device's bridge is not supported: it identifies itself as {:#010x}, must be {:#06x} "
                             "in the upper half and version {} above the lowest byte",
                             word, wire::kMagic, wire::kVersion),
                 uri_, "build the bitstream and this program from the same version of Tenon");
  }
  const uint32_t log2 = word & (wire::kSimulatedBit - 1);
  const uint64_t bytes = uint64_t{1} << std::min(log2, 63u);
  if (bytes < wire::kSmallestMemory || bytes > wire::kLargestMemory) {
    return error(fmt::format("the device reports a memory of 2^{} bytes, must be {} to {} bytes", log2,
                             wire::kSmallestMemory, wire::kLargestMemory),
                 uri_, "build the bitstream again");
  }
  identification_ = {.memory_bytes = bytes, .simulated = (word & wire::kSimulatedBit) != 0};
  return {};
}

Expected<std::optional<Response>> Link::attempt(const Request& request) {
  const Bytes frame = encode(request);
  const size_t answer = request.operation == Operation::kReadMemory ? 2 * request.data * wire::kWordBytes : 32;
  const Deadline deadline(options_.timeout + line_time(frame.size() + answer));
  TENON_TRY(port_.write(frame, options_.timeout + line_time(frame.size())));
  Bytes bytes;
  do {
    bytes.clear();
    TENON_TRY(port_.read(bytes, deadline.remaining()));
    received_ += bytes.size();
    for (const uint8_t byte : bytes) {
      last_bytes_.push_back(byte);
      const auto contents = deframer_.push(byte);
      if (!contents) continue;
      auto response = decode_response(*contents);
      if (!response) return std::nullopt;  // it may have been the answer
      ++frames_;
      if (response->result == Result::kCorrupt) return std::nullopt;
      const size_t expected = request.operation == Operation::kReadMemory && response->result == Result::kDone
                                  ? request.data * wire::kWordBytes
                                  : wire::kWordBytes;
      if (response->sequence == request.sequence && response->data.size() == expected) return response;
    }
    if (last_bytes_.size() > kShownBytes) {
      last_bytes_.erase(last_bytes_.begin(), last_bytes_.end() - static_cast<std::ptrdiff_t>(kShownBytes));
    }
  } while (!deadline.passed());
  return std::nullopt;
}

Expected<Bytes> Link::request(Request request, int attempts) {
  request.sequence = ++sequence_;
  // After a failure, one attempt finds out whether the device is back: a client's many requests must not each wait.
  const int limit = lost_ ? 1 : attempts;
  for (int i = 0; i < limit; ++i) {
    repeated_ += i > 0;
    TENON_TRY_ASSIGN(response, attempt(request));
    if (!*response) continue;
    lost_ = false;
    if ((*response)->result != Result::kDone) return refused(request, (*response)->result);
    return std::move((*response)->data);
  }
  lost_ = attempts == kAttempts;
  return unanswered(limit);
}

std::unexpected<Diagnostic> Link::unanswered(int attempts) const {
  const auto seconds = [](nanoseconds time) { return std::chrono::duration<double>(time).count(); };
  const std::string tries = fmt::format("{} attempts of {:.2g} s each", attempts, seconds(options_.timeout));
  if (received_ == 0) {
    return error(fmt::format("the device does not answer: {} at {} baud, no byte has arrived", tries, options_.baud),
                 uri_, kDeadHelp);
  }
  if (frames_ == 0) {
    return error(fmt::format("the device speaks something else: {} bytes have arrived at {} baud, no frame of Tenon; "
                             "the last ones are {:02x}",
                             received_, options_.baud, fmt::join(last_bytes_, " ")),
                 uri_, kDeadHelp);
  }
  return error(fmt::format("the device does not answer any more: {}, after {} frames and {} repeated requests", tries,
                           frames_, repeated_),
               uri_, "check the cable, and open the device again");
}

std::unexpected<Diagnostic> Link::refused(const Request& request, Result result) const {
  const char* reason = result == Result::kRange         ? "the address or the length is outside the device"
                       : result == Result::kUnsupported ? "the operation is unknown"
                                                        : "the reason is unknown";
  return error(
      fmt::format("the bridge refuses operation {} at address {:#x} with {:#x} (result {}): {}",
                  static_cast<int>(request.operation), request.address, request.data, static_cast<int>(result), reason),
      uri_, "build the bitstream and this program from the same version of Tenon", Fault::kInternal);
}

Expected<uint32_t> Link::read_register(uint32_t offset) {
  TENON_TRY_ASSIGN(data, request({.operation = Operation::kReadRegister, .address = offset}));
  return load_word(*data);
}

Status Link::write_register(uint32_t offset, uint32_t value) {
  TENON_TRY(request({.operation = Operation::kWriteRegister, .address = offset, .data = value}));
  return {};
}

template <class Transfer>
Status Link::in_blocks(size_t words, const Transfer& transfer) {
  for (size_t done = 0; done < words;) {
    const size_t block = std::min(block_words_, words - done);
    const bool divisible = block > kSmallestBlock && !lost_;
    const uint64_t before = repeated_;
    const Status status = transfer(done, block, divisible ? kAttemptsOfBlock : kAttempts);
    if (status) done += block;
    else if (!divisible || status.error().fault == Fault::kInternal) return status;
    if (!status) block_words_ = std::max(kSmallestBlock, block / 2);
    else if (repeated_ == before) block_words_ = std::min<size_t>(wire::kMaxWords, block_words_ * 2);
  }
  return {};
}

Status Link::read_memory(uint64_t address, std::span<std::byte> data) {
  return in_blocks(data.size() / wire::kWordBytes, [&](size_t begin, size_t words, int attempts) -> Status {
    TENON_TRY_ASSIGN(block, request({.operation = Operation::kReadMemory,
                                     .address = static_cast<uint32_t>(address + begin * wire::kWordBytes),
                                     .data = static_cast<uint32_t>(words)},
                                    attempts));
    std::memcpy(data.data() + begin * wire::kWordBytes, block->data(), block->size());
    return {};
  });
}

Status Link::write_memory(uint64_t address, std::span<const std::byte> data) {
  return in_blocks(data.size() / wire::kWordBytes, [&](size_t begin, size_t words, int attempts) -> Status {
    const auto* bytes = reinterpret_cast<const uint8_t*>(data.data()) + begin * wire::kWordBytes;
    TENON_TRY(request({.operation = Operation::kWriteMemory,
                       .address = static_cast<uint32_t>(address + begin * wire::kWordBytes),
                       .data = static_cast<uint32_t>(words),
                       .payload = {bytes, words * wire::kWordBytes}},
                      attempts));
    return {};
  });
}

}  // namespace tenon::driver::serial
