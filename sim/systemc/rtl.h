// The Verilated RTL as the platform's accelerator module.
//
// The harness around the RTL contains the AXI4 memory model, which works on the bytes of the platform's memory
// directly. This access is the module's DMI, so the module requires a memory that grants DMI. SystemC's time and the
// RTL's clock are loosely coupled: the RTL runs in steps of kQuantum cycles while it is busy; its own counters are
// exact.
#pragma once

#include <memory>
#include <string>

#include "sim/systemc/accelerator.h"

namespace tenon::sim::systemc {

class RtlAccelerator final : public AcceleratorModule {
 public:
  static constexpr uint64_t kQuantum = 64;

  // `rtl` must use the platform's memory.
  RtlAccelerator(const sc_core::sc_module_name& name, std::unique_ptr<Simulator> rtl);

  std::string explain() override { return rtl_->explain(); }
  void observe(WriteObserver* observer) override { rtl_->observe(observer); }
  void record_timeline(bool on) override { rtl_->record_timeline(on); }
  std::span<const Interval> timeline() const override { return rtl_->timeline(); }

 private:
  void start_of_simulation() override;
  uint32_t read_register(uint32_t offset) override { return rtl_->read_register(offset); }
  void write_register(uint32_t offset, uint32_t value) override;
  void run();
  void raise_interrupt();

  std::unique_ptr<Simulator> rtl_;
  sc_core::sc_event started_;
};

}  // namespace tenon::sim::systemc
