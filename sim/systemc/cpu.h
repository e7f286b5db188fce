// The platform's processor, as far as a driver needs a processor: it reads and writes registers over the bus, and waits
// for the accelerator by its interrupt where software has enabled the interrupt, else by polling the status register.
//
// The host's thread calls read(), write() and wait_idle(); each runs the simulation until the result is available.
#pragma once

#include <cstdint>

#include "sim/systemc/time.h"

namespace tenon::sim::systemc {

class Cpu final : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<Cpu> socket;
  sc_core::sc_in<bool> interrupt;

  explicit Cpu(const sc_core::sc_module_name& name);

  uint32_t read(uint32_t offset);
  void write(uint32_t offset, uint32_t value);
  bool wait_idle(uint64_t cycles);  // waits at most `cycles`; returns whether the accelerator is idle

 private:
  enum class Request : uint8_t { kNone, kRead, kWrite, kWait };

  void run();
  void ask(Request request);
  uint32_t access(tlm::tlm_command command, uint32_t offset, uint32_t value);
  bool wait_for_idle();
  bool interrupt_enabled();

  sc_core::sc_event asked_;
  Request request_ = Request::kNone;
  uint32_t offset_ = 0, value_ = 0;
  uint64_t cycles_ = 0;
  bool idle_ = false;
};

}  // namespace tenon::sim::systemc
