// Random programs that are legal and free of races by construction, with every field, extent and token pattern in play.
//
// Semantics: a seed, a configuration and the options name one program for good. Instructions stay inside windows of the
// scratchpads that the program fills first; stores stay out of micro-ops and instructions in memory.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/fuzz/program.h"

namespace tenon::sim::fuzz {

struct GeneratorOptions {
  int min_length = 50, max_length = 200;  // instructions of the program, all launches together; SYNCs may go beyond
  std::optional<spec::Profile> profile =
      {};  // of all launches; empty: any that the configuration has, launch by launch
  int max_launches = 3;
  int64_t max_steps = 400;  // of one instruction: bounds the RTL's time
};

Program generate(const spec::Config& config, uint64_t seed, const GeneratorOptions& options = {});

}  // namespace tenon::sim::fuzz
