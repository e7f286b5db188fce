// The includes of SystemC and TLM-2.0, and the conversion between the timing model's cycles and SystemC time.
#pragma once

#include <tlm.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <systemc>

namespace tenon::sim::systemc {

// One cycle of the accelerator's clock: 100 MHz, as the driver counts limits (driver/simulated.h).
inline sc_core::sc_time cycles(uint64_t count) {
  static const sc_core::sc_time period(10, sc_core::SC_NS);
  return period * static_cast<double>(count);
}
inline uint64_t now_in_cycles() { return sc_core::sc_time_stamp().value() / cycles(1).value(); }

// Cycles of a register access on the bus, request and response.
inline constexpr uint64_t kRegisterCycles = 4;

}  // namespace tenon::sim::systemc
