// The one cycle model of the accelerator: what the behavioral simulator reports and the compiler's scheduler searches
// with.
//
// Semantics: engines with bounded queues, tokens, in-order execution, one shared read port and one write port with
// bursts, latency and several outstanding bursts an engine. Instructions are known by their extents alone, so a run
// needs no data. A stream that deadlocks ends where nothing can happen any more; so does one that is cut off.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"
#include "sim/simulator.h"
#include "sim/timing/dma.h"

namespace tenon::sim::timing {

// Cycles, as the RTL has them. The memory's are those of the AXI memory model beside the Verilated RTL.
struct Parameters {
  int read_latency = 60;   // from a burst's address to its first beat
  int write_latency = 40;  // from a burst's last beat to its response
  int outstanding = 4;     // read bursts an engine keeps in flight
  int fetch_latency = 4;   // from the last beat of an instruction to its place in a queue
  int fetch_slots = 64;    // slots that the fetcher reads ahead
  int start = 3;           // from a token-ready head to the first step
  int finish = 2;          // from the last effect to the tokens
  int gemm_pipeline = 10;  // from the last step to its write
  int rq_pipeline = 10;
  int alu_pipeline = 8;
};

struct Launch {
  spec::Profile profile = spec::Profile::kNative;
  uint64_t instructions = 0;  // address of the stream
  Bases bases{};
  std::array<uint8_t, spec::kEngines * spec::kEngines> tokens{};  // counter (p, c) at 7 p + c
};

struct Result {
  uint64_t cycles = 0;
  uint64_t read_beats = 0, write_beats = 0, read_bursts = 0, write_bursts = 0;
  std::array<uint64_t, spec::kEngines> busy{}, stall{};
  std::vector<Interval> timeline;  // where asked for
};

// The engine that executes: base: not the class but LDI, LDW, LDM, GEMM, RQ (ALU) or ST.
spec::Engine executing_engine(const spec::Instruction& instruction);

// Cycles that the instruction keeps its engine busy if the memory answers at once; no pipeline, no latency.
uint64_t steps(const spec::Config& config, const spec::Instruction& instruction);

Result run(const spec::Config& config, const Launch& launch, std::span<const spec::Decoded> stream,
           bool timeline = false, const Parameters& parameters = {});

}  // namespace tenon::sim::timing
