// Many random programs one after the other: the library behind `tenon fuzz accel`.
//
// Semantics: program i has seed `seed` + i, so that a failure is repeated by its seed alone. The runner executes a
// program as the caller likes (behavioral alone, or in lockstep with the RTL) and says what went wrong. The first
// failure ends the campaign: it is shrunk with the same runner and reported as assembly with the command that repeats
// it.
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
  int shrink_budget = 500;  // runs; 0: the program is reported as it is
  std::string config = {};  // the configuration's file, for the printed command; empty: its name will do
};

struct Failure {
  uint64_t seed = 0;
  Diagnostic found;  // with the program as it was made
  Program smallest;
  Diagnostic remaining;  // with the smallest
  std::string report;    // all of it for people
};

struct CampaignResult {
  int programs = 0;
  uint64_t instructions = 0;
  std::optional<Failure> failure;
};

// `progress`, where set, is called after each program that passed.
CampaignResult campaign(const spec::Config& config, const CampaignOptions& options, const Runner& run,
                        const std::function<void(const Program&)>& progress = {});

// The command line that makes this program again.
std::string command(std::string_view config, uint64_t seed, const GeneratorOptions& options);

// Options of a device's URI that make the memory behave as the program's seed says: latencies, stalls, the order of
// answers. So a seed repeats a failure, whoever runs it.
std::string memory_options(const Program& program);

// A runner on a behavioral simulator of its own.
Runner behavioral_runner();

}  // namespace tenon::sim::fuzz
