// Selects the tiling of each layer of a region.
//
// Semantics: of a few candidates per layer (candidate_tilings) the sequence with the fewest cycles by the cycle model
// of the accelerator (sim/timing) with a memory of this timing. A layer's cost depends on its predecessor, during which
// its loads begin. So the cost of a pair is the cycles that the second layer adds to a program of the first, and
// dynamic programming finds the cheapest path through the layers. The result is deterministic: a bound on simulated
// instructions, not on time, limits the candidates.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/backends/accel/fused.h"
#include "compiler/backends/accel/tile_program.h"
#include "hw/spec/memory_timing.h"

namespace tenon::compiler::accel {

std::vector<Tiling> choose_tilings(const spec::Config& config, const std::vector<Operands>& layers,
                                   const spec::MemoryTiming& memory = {});

// A part of a schedule: one layer, or several that are fused (fused.h, pooled.h).
struct Step {
  size_t first = 0, count = 1;  // layers
  Tiling tiling = {};           // of one, or of a layer and its pool
  FusedTiling fused = {};       // of others
};

// Emits the layers of a step, of all layers of the region.
void emit(TileProgram& program, std::span<const Operands> layers, const Step& step);

// Which layers are fused of those that can be: none, those for which cycles and a small price for traffic are less, or,
// for tests, all.
enum class Fusing : uint8_t { kNever, kCheapest, kWherePossible };

// The steps of a region. `internal[i]` says that no layer but i + 1 reads the output of layer i, and no caller, so
// that they may be fused. The cycle model ranks tilings of fused layers (fused_tilings) and the layers one by one;
// dynamic programming finds the cheapest division of the layers into steps.
std::vector<Step> choose_steps(const spec::Config& config, const std::vector<Operands>& layers,
                               const std::vector<bool>& internal, Fusing fusing, const spec::MemoryTiming& memory = {});

// The tiling that is chosen for each layer alone, by the layer's sizes.
using Tilings = std::map<std::string, Tiling>;

// About the cycles of a launch of these layers: each has the tiling that is chosen for it alone, as pairs are too many
// to compare for a price. Where the launch is too long to simulate, the sum of the tilings' estimates. `known` receives
// tilings, and saves their search where it has them already.
double cycles_of(const spec::Config& config, const std::vector<Operands>& layers, const spec::MemoryTiming& memory,
                 Tilings& known);

}  // namespace tenon::compiler::accel
