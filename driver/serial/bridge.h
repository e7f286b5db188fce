// The model of the bridge between a serial line and the accelerator: bytes in, bytes out, on a simulator.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "driver/serial/frame.h"
#include "sim/simulator.h"

namespace tenon::driver::serial {

// The far end of a serial line: consumes bytes, and appends the bytes that it sends in answer.
class Line {
 public:
  virtual ~Line() = default;
  virtual void receive(std::span<const uint8_t> bytes, Bytes& sent) = 0;
};

class Bridge final : public Line {
 public:
  // The simulator's memory must have memory_end(memory_bytes) bytes, memory_bytes a power of two.
  Bridge(std::unique_ptr<sim::Simulator> simulator, uint64_t memory_bytes);

  void receive(std::span<const uint8_t> bytes, Bytes& sent) override;

  uint64_t executed() const { return executed_; }  // requests, repeated ones not counted
  uint64_t refused() const { return refused_; }    // responses with another result than kDone

 private:
  Response answer(std::span<const uint8_t> frame);
  Response execute(const Request& request);
  Response execute_register(const Request& request);
  Response execute_memory(const Request& request);

  std::unique_ptr<sim::Simulator> simulator_;
  uint64_t memory_bytes_;
  Deframer deframer_;
  int last_sequence_ = -1;
  uint32_t last_data_ = 0;
  uint64_t executed_ = 0, refused_ = 0, poll_cycles_ = spec::serial::kFrameCycles;
};

}  // namespace tenon::driver::serial
