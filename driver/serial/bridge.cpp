#include "driver/serial/bridge.h"

#include <bit>
#include <cstring>

#include "hw/spec/registers.h"

namespace tenon::driver::serial {
namespace {

namespace wire = spec::serial;
using wire::Operation;
using wire::Result;

Response word(const Request& request, uint32_t data) {
  Response response{.sequence = request.sequence, .result = Result::kDone, .data = {}};
  append_word(response.data, data);
  return response;
}

Response refusal(uint8_t sequence, Result result) { return {.sequence = sequence, .result = result, .data = Bytes(4)}; }

}  // namespace

Bridge::Bridge(std::unique_ptr<sim::Simulator> simulator, uint64_t memory_bytes)
    : simulator_(std::move(simulator)), memory_bytes_(memory_bytes) {}

void Bridge::receive(std::span<const uint8_t> bytes, Bytes& sent) {
  for (const uint8_t byte : bytes) {
    const auto frame = deframer_.push(byte);
    if (!frame) continue;
    const Response response = answer(*frame);
    if (response.result != Result::kDone) ++refused_;
    const Bytes encoded = encode(response);
    sent.insert(sent.end(), encoded.begin(), encoded.end());
  }
}

Response Bridge::answer(std::span<const uint8_t> frame) {
  const uint8_t sequence = frame.size() > 1 ? frame[1] : 0;
  constexpr size_t kHeader = wire::kHeaderBytes + wire::kCrcBytes;
  if (frame.size() < kHeader) return refusal(sequence, Result::kCorrupt);
  if (load_word(frame.subspan(wire::kHeaderBytes)) != crc(frame.first(wire::kHeaderBytes))) {
    return refusal(sequence, Result::kCorrupt);
  }
  Request request{.operation = static_cast<Operation>(frame[0]),
                  .sequence = sequence,
                  .address = load_word(frame.subspan(2)),
                  .data = load_word(frame.subspan(6))};
  const auto payload = frame.subspan(kHeader);
  if (request.operation == Operation::kWriteMemory) {
    if (request.data > wire::kMaxWords || payload.size() != request.data * wire::kWordBytes + wire::kCrcBytes ||
        load_word(payload.last(wire::kCrcBytes)) != crc(payload.first(payload.size() - wire::kCrcBytes))) {
      return refusal(sequence, Result::kCorrupt);
    }
    request.payload = payload.first(payload.size() - wire::kCrcBytes);
  } else if (!payload.empty()) {
    return refusal(sequence, Result::kCorrupt);
  }
  return execute(request);
}

Response Bridge::execute(const Request& request) {
  const bool polls = request.operation == Operation::kReadRegister && request.address == spec::reg::kStatus;
  poll_cycles_ = polls ? wire::next_poll(poll_cycles_) : wire::kFrameCycles;
  simulator_->advance(poll_cycles_);
  switch (request.operation) {
    case Operation::kHello:
      last_sequence_ = request.sequence;
      last_data_ = wire::kMagic << 16 | wire::kVersion << 8 | wire::kSimulatedBit |
                   static_cast<uint32_t>(std::countr_zero(memory_bytes_));
      ++executed_;
      return word(request, last_data_);
    case Operation::kReadRegister:
    case Operation::kWriteRegister: return execute_register(request);
    case Operation::kReadMemory:
    case Operation::kWriteMemory: return execute_memory(request);
  }
  return refusal(request.sequence, Result::kUnsupported);
}

Response Bridge::execute_register(const Request& request) {
  if (request.address % wire::kWordBytes != 0 || request.address >= spec::kRegisterSpaceBytes) {
    return refusal(request.sequence, Result::kRange);
  }
  if (last_sequence_ != request.sequence) {
    last_sequence_ = request.sequence;
    ++executed_;
    if (request.operation == Operation::kReadRegister) last_data_ = simulator_->read_register(request.address);
    else simulator_->write_register(request.address, request.data);
  }
  return word(request, last_data_);
}

Response Bridge::execute_memory(const Request& request) {
  const uint64_t bytes = uint64_t{request.data} * wire::kWordBytes;
  const uint64_t begin = wire::memory_base(memory_bytes_), end = wire::memory_end(memory_bytes_);
  if (request.address < begin || request.address >= end || request.address % wire::kWordBytes != 0 ||
      request.data == 0 || request.data > wire::kMaxWords || bytes > end - request.address) {
    return refusal(request.sequence, Result::kRange);
  }
  ++executed_;
  std::byte* const memory = simulator_->memory().data() + request.address;
  if (request.operation == Operation::kWriteMemory) {
    std::memcpy(memory, request.payload.data(), bytes);
    return word(request, last_data_);
  }
  Response response{.sequence = request.sequence, .result = Result::kDone, .data = Bytes(bytes)};
  std::memcpy(response.data.data(), memory, bytes);
  return response;
}

}  // namespace tenon::driver::serial
