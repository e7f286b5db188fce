// Runs of random programs that are disturbed: by a soft reset in any cycle, and by an error of the memory in any
// transfer. Both leave a device that runs the whole program as if nothing had happened.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/fuzz/program.h"

namespace tenon::sim::fuzz {

// A program in which one transfer accesses memory past its end, and the stop that this transfer must cause.
struct BusError {
  Program program;
  size_t launch = 0;
  uint32_t slot = 0;
  spec::StopCode code = spec::StopCode::kReadError;
};
// Moves a random transfer of the program past the end of memory; empty where no transfer has bytes in memory.
std::optional<BusError> plant_bus_error(const Program& program, uint64_t seed);

// Runs the launches up to the wrong one, which must stop with its code at its instruction. The simulator must have
// exactly the program's memory.
Status run_bus_error(Simulator& simulator, const BusError& wrong, uint64_t cycles);

// Starts the program and resets the simulator in a random cycle of a random launch. Checked: idle soon, every register
// but the arguments as after power-up, and memory as the launch may leave it: each byte is old, or has a value that a
// store of the launch gives it.
Status interrupt(Simulator& simulator, const Program& program, uint64_t seed);

// Runs the program as run() does; before that, of ten programs three are interrupted and three meet a bus error, by
// their seeds.
Status run_disturbed(Simulator& simulator, const Program& program, uint64_t cycles = uint64_t{1} << 32);

}  // namespace tenon::sim::fuzz
