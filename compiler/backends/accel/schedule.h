// Which tiling each layer of a region gets.
//
// Semantics: of a few candidates a layer (candidate_tilings) the sequence whose cycles are least, by the cycle model of
// the accelerator (sim/timing). A layer's cost depends on the one before: its loads begin while that one still
// computes. So the cost of a pair is what the second adds to a program of the first, and the cheapest path through the
// layers is found by dynamic programming. Deterministic: a bound on simulated instructions, no clock, limits the
// candidates.
#pragma once

#include <vector>

#include "compiler/backends/accel/tile_program.h"

namespace tenon::compiler::accel {

std::vector<Tiling> choose_tilings(const spec::Config& config, const std::vector<Operands>& layers);

}  // namespace tenon::compiler::accel
