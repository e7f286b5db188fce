// The behavioral simulator: executes instruction streams on host memory, whole instructions at a time, and checks that
// the result does not depend on timing.
//
// Semantics: sim/simulator.h; status codes, error indices, tokens and final memory are the hardware's. Beyond the
// hardware's stop codes a run ends with kRace or kUninitialised where the race detector is on; explain() then names the
// instructions and the region. Cycles, stalls and bursts come from sim/timing and are estimates. Advancing by a cycle
// executes at least one instruction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "hw/spec/config.h"
#include "sim/simulator.h"
#include "sim/timing/model.h"

namespace tenon::sim {

struct BehavioralOptions {
  uint64_t memory_bytes = uint64_t{256} << 20;
  std::span<std::byte> memory = {};  // where not empty: the caller's memory, used instead of the simulator's own
  bool detect_races = true;
  std::string kernels = {};  // "avx512-vnni", "avx2", "portable"; empty: the fastest set of this machine
  timing::Parameters timing = {};
};

Expected<std::unique_ptr<Simulator>> make_behavioral(const spec::Config& config, const BehavioralOptions& options = {});

}  // namespace tenon::sim
