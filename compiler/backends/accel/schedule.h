// Selects the tiling of each layer of a region.
//
// Semantics: of a few candidates per layer (candidate_tilings) the sequence with the fewest cycles by the cycle model
// of the accelerator (sim/timing) with a memory of this timing. A layer's cost depends on its predecessor, during which
// its loads begin. So the cost of a pair is the cycles that the second layer adds to a program of the first, and
// dynamic programming finds the cheapest path through the layers. The result is deterministic: a bound on simulated
// instructions, not on time, limits the candidates.
#pragma once

#include <vector>

#include "compiler/backends/accel/tile_program.h"
#include "hw/spec/memory_timing.h"

namespace tenon::compiler::accel {

std::vector<Tiling> choose_tilings(const spec::Config& config, const std::vector<Operands>& layers,
                                   const spec::MemoryTiming& memory = {});

// Cycles of a launch of this layer alone, with the tiling that is chosen for it; where the launch is too long to
// simulate, by the tiling's estimate.
double cycles_alone(const spec::Config& config, const Operands& layer, const spec::MemoryTiming& memory = {});

}  // namespace tenon::compiler::accel
