// Prefetching: reorders a tile program so that loads precede the operations that they may overlap with.
//
// Semantics: each load moves up past operations that it does not conflict with (tokens.h: accesses), not past a load of
// the same engine, and not past more than `lead` cycles of matrix products. What the program computes stays the same.
// Why: instructions are fetched in order into queues of a few dozen, so a load next to its first use is
// dispatched late, and then competes for the memory port with urgent loads.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/backends/accel/tile_program.h"
#include "hw/spec/memory_timing.h"

namespace tenon::compiler::accel {

enum class Prefetch : uint8_t { kConstants, kAll };  // weights and parameters, or inputs and residuals too

std::vector<TileOp> prefetched(const spec::Config& config, const std::vector<TileOp>& ops, Prefetch which,
                               int64_t lead);

// The order with the fewest cycles by the cycle model with a memory of this timing, of a few leads; a program that is
// too long to simulate several times gets a moderate lead.
std::vector<TileOp> prefetched(const spec::Config& config, const std::vector<TileOp>& ops,
                               const spec::MemoryTiming& memory = {});

}  // namespace tenon::compiler::accel
