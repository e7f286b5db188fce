// The virtual platform as a Simulator: a processor, memory, interconnect, interrupt line and the accelerator in
// SystemC.
//
// Semantics: sim/simulator.h. The processor accesses registers over the bus; memory() is the platform's memory as a
// debugger sees it. SystemC supports one simulation per process, and no new modules once it runs. So the first platform
// of a process stays: destroying its simulator only releases the platform, and a later simulator of the same
// configuration and options uses it again, reset and with its memory zeroed. A simulator of other options is an error,
// as is a second simulator while the first is in use.
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
  VerilatedOptions rtl = {};  // without the memory, which the platform provides
};

Expected<std::unique_ptr<Simulator>> make_systemc(const spec::Config& config, const SystemcOptions& options = {});

}  // namespace tenon::sim
