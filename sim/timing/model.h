// The cycle model of the accelerator, for the counters of the behavioral simulator and for the compiler's scheduler.
//
// Semantics: discrete events of the parts of the RTL that take time. Fetch and decode; a queue and a sequencer per
// class (native: per engine) with two instructions in flight; the units that execute; the token matrix; the read
// channel that fetch and the three load units share, burst by burst; the write channel. A run depends on the extents of
// instructions alone and needs no data. A run ends when no unit can make progress, also for a stream that deadlocks or
// is truncated.
//
// The accumulators' read port is modelled as the share that GEMM leaves. Not modelled: repeated destinations of
// micro-ops in an ALU instruction, which only the micro-ops' values show. Busy and stall cycles are counted for
// classes, as the hardware's counters do.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"
#include "hw/spec/memory_timing.h"
#include "sim/simulator.h"
#include "sim/timing/dma.h"

namespace tenon::sim::timing {

// Latencies and limits, in cycles: the memory's, and the RTL's. In order, the registers between the stages of units are
// absent (`of`).
struct Parameters {
  spec::MemoryTiming memory = {};
  int start = 1;          // from a sequencer's start to the unit's
  int address = 5;        // from a load's start to its first address at the port
  int beat = 6;           // from a beat at the port to its use
  int decode = 7;         // from an instruction's last beat to its entry into a queue
  int gemm_pipeline = 8;  // from the last step to done
  int alu_pipeline = 4;
  int rq_pipeline = 12;
  int rq_to_inp = 1;       // the queue of results in front of inp
  int store_pipeline = 8;  // from a store's start to its first beat
  int store_refill = 6;    // from an overlapping store's last beat to the first one of the next, besides the row's gap
  int store_done = 1;      // from the last response to done
  int open_writes = 6;     // write bursts that the store unit keeps open
  int launch = 3;          // from ap_start to the first address
  int end = 1;             // from the last instruction to the end

  Parameters of(const spec::Config& config) const;
};

struct Launch {
  spec::Profile profile = spec::Profile::kNative;
  uint64_t instructions = 0;  // address of the stream
  Bases bases{};
  std::array<uint8_t, spec::kEngines * spec::kEngines> tokens{};  // counter (p, c) at kEngines * p + c
};

struct Result {
  uint64_t cycles = 0;
  uint64_t read_beats = 0, write_beats = 0, read_bursts = 0, write_bursts = 0;
  std::array<uint64_t, spec::kEngines> busy{}, stall{};
  std::vector<Interval> timeline;  // empty unless requested
};

using spec::Unit;
Unit unit_of(const spec::Config& config, const spec::Instruction& instruction);

// Cycles for which the instruction keeps its engine busy, without pipelines and latencies of memory.
uint64_t steps(const spec::Config& config, const spec::Instruction& instruction);

Result run(const spec::Config& config, const Launch& launch, std::span<const spec::Decoded> stream,
           bool timeline = false, const Parameters& parameters = {});

}  // namespace tenon::sim::timing
