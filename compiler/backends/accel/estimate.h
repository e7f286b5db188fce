// How long a tile program takes, by the accelerator's one cycle model (sim/timing).
#pragma once

#include <vector>

#include "compiler/backends/accel/tile_program.h"
#include "hw/spec/memory_timing.h"

namespace tenon::compiler::accel {

// A launch of these operations, tokens included, with a memory of this timing.
struct Estimate {
  double cycles = 0;
  double beats = 0;  // of the memory port, reads and writes
};
Estimate estimate(const spec::Config& config, const std::vector<TileOp>& ops, const spec::MemoryTiming& memory = {});

// Its cycles.
double simulate(const spec::Config& config, const std::vector<TileOp>& ops, const spec::MemoryTiming& memory = {});

}  // namespace tenon::compiler::accel
