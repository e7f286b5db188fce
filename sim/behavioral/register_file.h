// The register map as software sees it, for models whose launch is a C++ object. The RTL has its own register map,
// control.sv; tests/cosim compares the two.
//
// Semantics: the register file stores arguments, interrupts, status and stop code. Registers about the run are computed
// by the run when they are read, since counters may be expensive. Reading CONTROL clears ap_done.
#pragma once

#include <array>
#include <cstdint>

#include "hw/spec/isa.h"
#include "hw/spec/registers.h"
#include "sim/timing/model.h"
#include "sim/timing/tokens.h"

namespace tenon::sim {

class RegisterFile {
 public:
  // The state of a run.
  struct Progress {
    struct Engine {
      bool has = false;        // an instruction is queued or in flight
      bool in_flight = false;  // an instruction has started
      bool waits = false;      // the head of the queue waits for tokens
      uint32_t slot = 0;       // of the oldest instruction
    };
    std::array<Engine, spec::kEngines> engines;
    uint32_t decoded = 0;  // slots whose instructions are queued, in flight or done
  };
  class Run {
   public:
    virtual const timing::Result& counters() = 0;
    virtual uint64_t instructions_done() = 0;
    virtual uint64_t macs() = 0;
    virtual Progress progress() = 0;  // of the run; of a stopped run, its state at the stop

   protected:
    ~Run() = default;
  };

  explicit RegisterFile(const spec::Config& config);

  // `offset` is the offset of a register, a multiple of 4.
  uint32_t read(uint32_t offset, Run& run, const Tokens& tokens);

  // The action that a write requests from the model. A reset includes clearing the tokens.
  enum class Request : uint8_t { kNone, kStart, kClearTokens, kReset };
  Request write(uint32_t offset, uint32_t value);

  // Arguments of the launch.
  uint64_t stream() const { return argument64(spec::reg::kInstructions); }
  uint32_t count() const { return arguments_[spec::reg::kCount / 4]; }
  spec::Profile profile() const {
    return (arguments_[spec::reg::kMode / 4] & spec::kModeNative) != 0 ? spec::Profile::kNative : spec::Profile::kBase;
  }
  uint64_t base(uint32_t i) const { return argument64(spec::reg::kBase0 + 8 * i); }

  bool busy() const { return busy_; }
  bool interrupt() const { return (arguments_[spec::reg::kGlobalInterruptEnable / 4] & 1) != 0 && interrupts_ != 0; }

  void start();                                   // the run begins
  void end();                                     // the run ends, and ap_done rises
  void stop(spec::StopCode code, uint32_t slot);  // the run ends with an error
  void reset();                                   // as COMMAND's bit 0: everything but the arguments

 private:
  uint64_t argument64(uint32_t offset) const {
    return arguments_[offset / 4] | uint64_t{arguments_[offset / 4 + 1]} << 32;
  }

  const uint64_t hash_;
  const uint32_t capabilities_;
  const spec::Config config_;
  const bool has_counters_;
  std::array<uint32_t, spec::kRegisterSpaceBytes / 4> arguments_{};  // the writable registers
  bool busy_ = false, done_ = false;
  uint32_t interrupts_ = 0, error_slot_ = 0;
  spec::StopCode code_ = spec::StopCode::kNone;
};

}  // namespace tenon::sim
