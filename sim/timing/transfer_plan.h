// The plan of a transfer on the memory port: its bursts in order, and the cycles of its unit's work on each burst.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/spec/config.h"
#include "sim/timing/dma.h"

namespace tenon::sim::timing {

inline constexpr uint64_t kBurstBoundary = 4096;  // AXI: no burst crosses a multiple

struct Burst {
  uint32_t beats = 0;
  uint32_t work = 0;       // cycles of the unit from the first beat on, without waits for beats
  uint32_t idle_work = 0;  // cycles of work before the burst that need no beat: rows of padding
};

struct TransferPlan {
  std::vector<Burst> bursts;
  uint32_t tail = 0;      // cycles of work after the last burst
  uint32_t last_row = 0;  // number of bursts of the last row with bursts
};

// Appends the bursts that cover [address, address + bytes).
void append_bursts(const spec::Config& config, uint64_t address, uint64_t bytes, uint32_t max_beats,
                   std::vector<Burst>& bursts);
TransferPlan plan(const spec::Config& config, const Dma& dma);

}  // namespace tenon::sim::timing
