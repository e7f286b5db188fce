// The interface of the platform's accelerator module: sockets and an interrupt, and the diagnostics of a Simulator.
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

  // Clears the scratchpads, which a soft reset leaves; does nothing where their initial contents are random anyway.
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
