// The RTL of a configuration as a Simulator: cycle-accurate, with an AXI4 memory model.
//
// Semantics: sim/simulator.h, with registers accessed through AXI4-Lite, so that a register read takes a few cycles.
// advance() may run up to kPollCycles past the cycle in which the accelerator becomes idle; the hardware's own counters
// have stopped by then. The initial contents of scratchpads depend on the seed. An AXI violation or a failed assertion
// stops the model permanently: it stays busy, and explain() returns the violation. While the model is observed, the
// counters of each launch are compared with what the harness saw at the ports, and the interrupt output with its
// registers; a difference is such a violation too.
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
#include "hw/spec/memory_timing.h"
#include "sim/simulator.h"
#include "sim/verilator/axi_memory.h"

namespace tenon::sim {

inline constexpr uint64_t kPollCycles = 64;

struct VerilatedOptions {
  uint64_t memory_bytes = uint64_t{256} << 20;  // rounded up to 4 KiB
  std::span<std::byte> memory = {};  // where not empty: the caller's memory, in whole pages, instead of the model's own
  uint32_t read_latency = 60, write_latency = 40;
  uint32_t outstanding = 16;
  uint32_t stall_percent = 0;  // of every channel, those of AXI4-Lite included
  bool interleave = false;
  WriteOrder write_order = WriteOrder::kAddressFirst;
  bool late_ready = false;             // the memory raises each ready only after its valid
  uint64_t read_error = ~uint64_t{0};  // an address whose beat the memory reads with an error
  bool fast_dot = true;  // a model whose dot products are computed in one step; false: by the array that is synthesized
  uint64_t seed = 1;
  std::string vcd = {};       // a file for waves; empty: none
  std::string coverage = {};  // a file for the counts of the RTL's lines, which verilator_coverage reads; empty: none

  spec::MemoryTiming memory_timing() const {
    return {static_cast<int>(read_latency), static_cast<int>(write_latency), static_cast<int>(outstanding)};
  }
  std::function<void(const std::string&)> progress = {};
};

Expected<std::unique_ptr<Simulator>> make_verilated(const spec::Config& config, const VerilatedOptions& options = {});

}  // namespace tenon::sim
