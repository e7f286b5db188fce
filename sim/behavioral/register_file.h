// The register map as software sees it, for models whose launch is a C++ object. The RTL has its own, control.sv;
// tests/cosim holds the two against each other.
//
// Semantics: arguments, interrupts, status and stop code are kept here. What only the run knows it is asked for when a
// register wants it, since counters may cost a computation. Reading CONTROL takes ap_done away.
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
  // What a run tells of itself.
  struct Progress {
    struct Engine {
      bool has = false, in_flight = false, waits = false;  // an instruction; one that has started; the head, for tokens
      uint32_t slot = 0;                                   // of the oldest instruction
    };
    std::array<Engine, spec::kEngines> engines;
    uint32_t decoded = 0;  // slots whose instructions are queued, in flight or done
  };
  class Run {
   public:
    virtual const timing::Result& counters() = 0;
    virtual uint64_t instructions_done() = 0;
    virtual uint64_t macs() = 0;
    virtual Progress progress() = 0;  // of the run, or of one that stopped as it was then

   protected:
    ~Run() = default;
  };

  explicit RegisterFile(const spec::Config& config);

  // `offset` is that of a register, a multiple of 4.
  uint32_t read(uint32_t offset, Run& run, const Tokens& tokens);

  // What a write asks the model to do. A reset asks for tokens to be cleared as well.
  enum class Request : uint8_t { kNone, kStart, kClearTokens, kReset };
  Request write(uint32_t offset, uint32_t value);

  // The arguments.
  uint64_t stream() const { return argument64(spec::reg::kInstructions); }
  uint32_t count() const { return arguments_[spec::reg::kCount / 4]; }
  spec::Profile profile() const {
    return (arguments_[spec::reg::kMode / 4] & spec::kModeNative) != 0 ? spec::Profile::kNative : spec::Profile::kBase;
  }
  uint64_t base(uint32_t i) const { return argument64(spec::reg::kBase0 + 8 * i); }

  bool busy() const { return busy_; }
  bool interrupt() const { return (arguments_[spec::reg::kGlobalInterruptEnable / 4] & 1) != 0 && interrupts_ != 0; }

  void start();                                   // a run begins
  void end();                                     // it is over, and ap_done rises
  void stop(spec::StopCode code, uint32_t slot);  // it ends with an error
  void reset();                                   // as COMMAND's bit 0: all but the arguments

 private:
  uint64_t argument64(uint32_t offset) const {
    return arguments_[offset / 4] | uint64_t{arguments_[offset / 4 + 1]} << 32;
  }

  const uint64_t hash_;
  const uint32_t capabilities_;
  std::array<uint32_t, spec::kRegisterSpaceBytes / 4> arguments_{};  // the writable registers
  bool busy_ = false, done_ = false;
  uint32_t interrupts_ = 0, error_slot_ = 0;
  spec::StopCode code_ = spec::StopCode::kNone;
};

}  // namespace tenon::sim
