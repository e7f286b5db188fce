// A program for fuzzing: an image of memory, and one or more launches. Tokens and scratchpads survive from one launch
// to the next.
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
  std::vector<std::byte> memory;  // the image at address 0, without the streams; as large as memory
  std::vector<Launch> launches;
  size_t length() const;  // instructions of all launches
};

// Writes the memory image and all streams into the simulator, whose memory must be large enough, and clears its tokens.
void load(Simulator& simulator, const Program& program);
// Writes the registers of one launch and starts it.
void start(Simulator& simulator, const Program& program, size_t launch);
// Starts one launch of a loaded program and waits for its end. A stop, a simulator that gives up (a broken rule of
// AXI), and more than `cycles` cycles are errors.
Status run_launch(Simulator& simulator, const Program& program, size_t launch, uint64_t cycles);
// Loads the program and runs its launches in order.
Status run(Simulator& simulator, const Program& program, uint64_t cycles = uint64_t{1} << 32);

// The program as assembly, with its bases, and with a comment before each launch.
std::string to_text(const Program& program);

}  // namespace tenon::sim::fuzz
