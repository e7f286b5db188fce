// The interface that every simulator of the accelerator implements: registers, memory and time, without a board.
//
// Semantics: a simulator is the accelerator as software sees it through s_axi_control and m_axi, with a DRAM of its own
// at physical addresses [0, memory().size()). Time passes in advance() only. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hw/spec/config.h"
#include "support/diagnostic.h"

namespace tenon::sim {

// One architectural write: the value that an instruction leaves in one element of a scratchpad, or in DRAM. An
// instruction that writes an element several times (partial sums) has left only the last value.
struct Write {
  uint32_t instruction = 0;  // slot index
  spec::Memory memory = spec::Memory::kDram;
  uint64_t address = 0;              // element index; byte address for DRAM
  std::span<const std::byte> value;  // the element; the bytes written for DRAM; valid during the call
};

// Receives writes as they happen: several writes of one instruction to one address are possible, the last one counts.
// The order between engines is not architectural.
class WriteObserver {
 public:
  virtual ~WriteObserver() = default;
  virtual void on_write(const Write& write) = 0;
  virtual void on_done(uint32_t instruction) = 0;  // all writes of the instruction have been reported
};

// One interval of one engine, for the timeline: [begin, end) in cycles since the launch.
struct Interval {
  enum class Kind : uint8_t { kBusy, kWaitTokens, kWaitMemory };
  uint8_t engine = 0;  // spec::Engine
  Kind kind = Kind::kBusy;
  uint32_t instruction = 0;
  uint64_t begin = 0, end = 0;
};

class Simulator {
 public:
  virtual ~Simulator() = default;
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  virtual const spec::Config& config() const = 0;
  virtual uint32_t read_register(uint32_t offset) = 0;
  virtual void write_register(uint32_t offset, uint32_t value) = 0;
  virtual std::span<std::byte> memory() = 0;

  // Simulates at most `cycles` cycles, fewer where the accelerator becomes idle. The behavioral simulator defines a
  // cycle by itself, but each call makes progress. Returns whether the accelerator is still busy.
  virtual bool advance(uint64_t cycles) = 0;

  // The human-readable explanation of a stop or a hang: tokens, queue contents, racing instructions, addresses; empty
  // where the status register says everything.
  virtual std::string explain() = 0;

  virtual void observe(WriteObserver* observer) = 0;  // nullptr: none
  // The timeline of the last launch; recording costs time and is off by default.
  virtual void record_timeline(bool on) = 0;
  virtual std::span<const Interval> timeline() const = 0;

 protected:
  Simulator() = default;
};

}  // namespace tenon::sim
