// Runs of random programs that are disturbed: by a soft reset in any cycle, by an error of the memory in any transfer,
// and by an index outside its scratchpad in any computation. All leave a device that runs the whole program as if
// nothing had happened.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/fuzz/program.h"

namespace tenon::sim::fuzz {

// A program with one wrong instruction, and the stop that this must cause.
struct Fault {
  Program program;
  size_t launch = 0;
  uint32_t slot = 0;
  spec::StopCode code = spec::StopCode::kReadError;
  bool alone = false;  // no other instruction of the launch moves tokens
};
// Moves a random transfer of the program past the end of memory; empty where no transfer has bytes in memory, or where
// the configuration has no addresses past its end.
std::optional<Fault> plant_bus_error(const Program& program, uint64_t seed);
// Replaces a launch by one of its computations, with a stride by which a step leaves a scratchpad, and another
// instruction of its engine, which must not start to have an effect. Nothing else runs: the steps before the wrong one
// may write what other instructions use. The wrong one has tokens to give. Empty where the behavioral simulator
// confirms none.
std::optional<Fault> plant_range_error(const Program& program, uint64_t seed);

// Runs the launches up to the wrong one, which must stop with its code at its instruction, and give no tokens where it
// is alone. The simulator must have exactly the program's memory.
Status run_fault(Simulator& simulator, const Fault& fault, uint64_t cycles);

// Starts the program and resets the simulator in a random cycle of a random launch. Checked: idle soon, every register
// but the arguments as after power-up, and memory as the launch may leave it: each byte is old, or has a value that a
// store of the launch gives it. A launch before that takes at most `cycles` cycles.
Status interrupt(Simulator& simulator, const Program& program, uint64_t seed, uint64_t cycles);

// Runs the program as run() does; before that, of ten programs three are interrupted, three meet a bus error and
// three an index outside its scratchpad, by their seeds.
Status run_disturbed(Simulator& simulator, const Program& program, uint64_t cycles = uint64_t{1} << 32);

}  // namespace tenon::sim::fuzz
