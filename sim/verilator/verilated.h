// The RTL of a configuration as a Simulator: cycle-accurate, with an AXI4 memory model.
//
// Semantics: sim/simulator.h, with registers accessed through AXI4-Lite, so that a register read takes a few cycles.
// advance() may run up to kPollCycles past the cycle in which the accelerator becomes idle; the hardware's own counters
// have stopped by then. The initial contents of scratchpads depend on the seed. An AXI violation or a failed assertion
// stops the model permanently: it stays busy, and explain() returns the violation.
//
// Writes are reported as whole elements. Where an instruction loads a part of an element, the remaining part has the
// values of earlier observed loads, or 0.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "hw/spec/config.h"
#include "sim/simulator.h"

namespace tenon::sim {

inline constexpr uint64_t kPollCycles = 64;

struct VerilatedOptions {
  uint64_t memory_bytes = uint64_t{256} << 20;  // rounded up to 4 KiB
  std::span<std::byte> memory = {};  // where not empty: the caller's memory, in whole pages, instead of the model's own
  uint32_t read_latency = 60, write_latency = 40;
  uint32_t outstanding = 16;
  uint32_t stall_percent = 0;
  bool interleave = false;
  uint64_t seed = 1;
  std::string vcd;  // a file for waves; empty: none
  std::function<void(const std::string&)> progress;
};

Expected<std::unique_ptr<Simulator>> make_verilated(const spec::Config& config, const VerilatedOptions& options = {});

}  // namespace tenon::sim
