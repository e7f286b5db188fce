// Campaigns of random programs: the library of `tenon fuzz accel`.
//
// Semantics: program i has seed `seed` + i, so that a failure is repeated by its seed alone. The caller's runner
// executes a program (on the behavioral simulator alone, or in lockstep with the RTL) and returns an error for a
// failure. The first failure ends the campaign: its program is shrunk with the same runner and reported as assembly
// with the command that repeats it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/fuzz/generator.h"
#include "sim/fuzz/program.h"

namespace tenon::sim::fuzz {

using Runner = std::function<Status(const Program&)>;

struct CampaignOptions {
  uint64_t seed = 1;
  int count = 200;
  GeneratorOptions generator = {};
  int shrink_budget = 500;  // runs; 0: the program is not shrunk
  std::string config = {};  // the configuration's file, for the printed command; empty: its name suffices
};

struct Failure {
  uint64_t seed = 0;
  Diagnostic found;  // of the generated program
  Program smallest;
  Diagnostic remaining;  // of the smallest program
  std::string report;    // the human-readable summary
};

struct CampaignResult {
  int programs = 0;
  uint64_t instructions = 0;
  std::optional<Failure> failure;
};

// `progress`, where set, is called after each program that passed.
CampaignResult campaign(const spec::Config& config, const CampaignOptions& options, const Runner& run,
                        const std::function<void(const Program&)>& progress = {});

// The command line that generates and runs this program again.
std::string command(std::string_view config, uint64_t seed, const GeneratorOptions& options);

// URI options of a device that derive the behavior of its memory from the program's seed: latencies, stalls, the order
// of answers and of handshakes. So a seed alone repeats a failure.
std::string memory_options(const Program& program);

// A runner that creates a behavioral simulator for each program.
Runner behavioral_runner();

}  // namespace tenon::sim::fuzz
