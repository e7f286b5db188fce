// Programs of VTA in files of format VTAC0001: tests/vta/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sim/simulator.h"
#include "support/diagnostic.h"

namespace tenon::sim::vta {

struct Record {
  enum class Kind : uint32_t { kInstructions, kUops, kWeights, kInputs, kAccumulators, kOutput, kAccumulators8 };
  uint64_t address = 0;
  Kind kind = Kind::kInstructions;
  std::vector<std::byte> data;
};

struct Program {
  std::string name;
  uint32_t instructions = 0;  // slots
  uint64_t stream = 0;        // address
  uint64_t memory_bytes = 0;
  std::vector<Record> before, after;
};

Expected<Program> read_program(const std::filesystem::path& file);
Expected<Program> parse_program(std::span<const std::byte> bytes, const std::string& name);

// Writes the program's memory image and registers, and starts the program; other bytes of memory are unchanged.
Status start(Simulator& simulator, const Program& program);
// Runs the program to its end, for at most `cycles`, and compares memory with the program's expected results: the first
// byte that differs is an error, as is a stop code or a run beyond the limit.
Status run(Simulator& simulator, const Program& program, uint64_t cycles = uint64_t{1} << 40);

}  // namespace tenon::sim::vta
