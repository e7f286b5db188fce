// The virtual platform as a Simulator: a processor, memory, interconnect, interrupt line and the accelerator in
// SystemC.
//
// Semantics: sim/simulator.h. Registers are reached by the processor over the bus; memory() is the platform's memory as
// a debugger sees it. SystemC knows one simulation a process, and no module can be made once it runs. So the first
// platform of a process stays: destroying it only gives it back, and making one of the same configuration and options
// takes it up again, reset and with its memory zeroed. Any other is an error that says so, as is a second one while the
// first is in use.
#pragma once

#include <memory>

#include "hw/spec/config.h"
#include "sim/simulator.h"
#include "sim/timing/model.h"
#include "sim/verilator/verilated.h"

namespace tenon::sim {

struct SystemcOptions {
  enum class Model : uint8_t { kTlm, kRtl };
  Model model = Model::kTlm;
  uint64_t memory_bytes = uint64_t{256} << 20;  // rounded up to 4 KiB
  bool dmi = true;                              // whether memory grants DMI; the RTL needs it
  timing::Parameters timing = {};
  VerilatedOptions rtl = {};  // its memory aside
};

Expected<std::unique_ptr<Simulator>> make_systemc(const spec::Config& config, const SystemcOptions& options = {});

}  // namespace tenon::sim
