// Runs the VTA programs through the driver, as runtime and boards do: buffers, base addresses, launch, finish.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "driver/accelerator.h"
#include "sim/vta/vta_program.h"

namespace tenon::driver {

// The programs' names, in the order of tests/vta/index.json, and VTA's own cycles (0: unknown).
struct VtaEntry {
  std::string name;
  uint64_t vta_cycles = 0;  // of VTA's Chisel RTL with a 64-bit bus (DE10)
  uint64_t macs = 0;
};
std::vector<VtaEntry> vta_index();

// Runs the program in a buffer at any address of the device; an error names the first byte that differs.
Expected<Counters> run_vta(Accelerator& accelerator, const sim::vta::Program& program, std::chrono::nanoseconds limit);

}  // namespace tenon::driver
