// What stands at the accelerator's place in the platform: sockets and an interrupt, and what a Simulator says beside
// them.
#pragma once

#include <span>
#include <string>

#include "sim/simulator.h"
#include "sim/systemc/memory_port.h"

namespace tenon::sim::systemc {

class AcceleratorModule : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<AcceleratorModule> control;
  MemoryPort memory;
  sc_core::sc_out<bool> interrupt;

  // Takes contents of scratchpads away that a soft reset leaves; where they are random anyway, nothing.
  virtual void power_on() {}
  virtual std::string explain() = 0;
  virtual void observe(WriteObserver* observer) = 0;
  virtual void record_timeline(bool on) = 0;
  virtual std::span<const Interval> timeline() const = 0;

 protected:
  explicit AcceleratorModule(const sc_core::sc_module_name& name);

  virtual uint32_t read_register(uint32_t offset) = 0;
  virtual void write_register(uint32_t offset, uint32_t value) = 0;

 private:
  void transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
};

}  // namespace tenon::sim::systemc
