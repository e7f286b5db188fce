// How a transfer takes the memory port: its bursts in order, and the cycles in which its unit works on each.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/spec/config.h"
#include "sim/timing/dma.h"

namespace tenon::sim::timing {

struct Burst {
  uint32_t beats = 0;
  uint32_t work = 0;       // cycles of the unit, from the first beat on, if all beats were there
  uint32_t idle_work = 0;  // cycles before it that need no beat: rows of padding
};

struct TransferPlan {
  std::vector<Burst> bursts;
  uint32_t tail = 0;      // work behind the last burst
  uint32_t last_row = 0;  // bursts of the last row that has any
};

// The bursts that cover [address, address + bytes).
void append_bursts(const spec::Config& config, uint64_t address, uint64_t bytes, uint32_t max_beats,
                   std::vector<Burst>& bursts);
TransferPlan plan(const spec::Config& config, const Dma& dma);

}  // namespace tenon::sim::timing
