// Random programs that are legal and free of races by construction, and cover every field, extent and token pattern.
//
// Semantics: a seed, a configuration and the options identify one program forever. Instructions stay inside windows of
// the scratchpads that the program fills first; no store overwrites micro-ops or instructions in memory.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/fuzz/program.h"

namespace tenon::sim::fuzz {

struct GeneratorOptions {
  int min_length = 50, max_length = 200;  // instructions of the program, all launches together; SYNCs may exceed it
  std::optional<spec::Profile> profile =
      {};  // of all launches; empty: a random profile of the configuration for each launch
  int max_launches = 3;
  int64_t max_steps = 400;  // of one instruction: bounds the simulation time of the RTL
};

// An error where the configuration addresses less memory than a program needs. Where it addresses little more, programs
// have fewer instructions.
Status check_memory(const spec::Config& config);

Program generate(const spec::Config& config, uint64_t seed, const GeneratorOptions& options = {});

}  // namespace tenon::sim::fuzz
