// A program for fuzzing: what memory holds, and one or more launches on it. Tokens and scratchpads survive from one
// launch to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"
#include "sim/simulator.h"
#include "sim/timing/dma.h"

namespace tenon::sim::fuzz {

struct Launch {
  spec::Profile profile = spec::Profile::kNative;
  std::vector<spec::Instruction> instructions;
  uint64_t stream = 0;  // address of its slots
  uint32_t slots() const {
    return static_cast<uint32_t>(instructions.size()) * (profile == spec::Profile::kNative ? 2 : 1);
  }
};

struct Program {
  spec::Config config;
  uint64_t seed = 0;
  Bases bases{};
  std::vector<std::byte> memory;  // the image at address 0, streams not included; its size is that of memory
  std::vector<Launch> launches;
  size_t length() const;  // instructions of all launches
};

// Writes memory's image and all streams into the simulator and clears its tokens. Its memory must not be smaller.
void load(Simulator& simulator, const Program& program);
// Writes the registers of one launch and starts it.
void start(Simulator& simulator, const Program& program, size_t launch);
// load, then every launch one after the other; a stop, or `cycles` passing in one launch, is an error that explains.
Status run(Simulator& simulator, const Program& program, uint64_t cycles = uint64_t{1} << 32);

// The program as assembly, with its bases; a comment before each launch.
std::string to_text(const Program& program);

}  // namespace tenon::sim::fuzz
