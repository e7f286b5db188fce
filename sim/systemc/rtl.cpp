#include "sim/systemc/rtl.h"

#include <cassert>

#include "hw/spec/registers.h"

namespace tenon::sim::systemc {

RtlAccelerator::RtlAccelerator(const sc_core::sc_module_name& name, std::unique_ptr<Simulator> rtl)
    : AcceleratorModule(name), rtl_(std::move(rtl)) {
  sc_core::sc_spawn([this] { run(); }, "clock");
}

void RtlAccelerator::start_of_simulation() {
  const auto bytes = rtl_->memory();
  [[maybe_unused]] const std::byte* const granted = memory.direct(0, bytes.size(), true);
  assert(granted == bytes.data() && "the RTL's memory must be the memory that the platform grants by DMI");
}

void RtlAccelerator::write_register(uint32_t offset, uint32_t value) {
  rtl_->write_register(offset, value);
  raise_interrupt();
  started_.notify(sc_core::SC_ZERO_TIME);  // also after a soft reset, which takes time to drain
}

void RtlAccelerator::raise_interrupt() {
  interrupt.write((rtl_->read_register(spec::reg::kGlobalInterruptEnable) & 1) != 0 &&
                  rtl_->read_register(spec::reg::kInterruptStatus) != 0);
}

void RtlAccelerator::run() {
  while (true) {
    sc_core::wait(started_);
    bool busy = true;
    while (busy) {
      busy = rtl_->advance(kQuantum);
      sc_core::wait(cycles(kQuantum));
      raise_interrupt();
    }
  }
}

}  // namespace tenon::sim::systemc
