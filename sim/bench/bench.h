// The speed of the simulators: the library of `tenon bench sim`.
//
// Figures are CPU time of this process, the median of several runs; a run is one launch, from start to the end of the
// stream, with the race detector on and memory already filled.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/fuzz/program.h"
#include "sim/simulator.h"
#include "support/diagnostic.h"

namespace tenon::sim::bench {

struct Measurement {
  std::string program;
  std::string simulator;   // "behavioral, avx512-vnni"
  uint64_t macs = 0;       // of one run
  uint64_t cycles = 0;     // of one run, as the simulator counts them
  double cpu_seconds = 0;  // of one run
  double gmacs_per_second() const { return cpu_seconds > 0 ? static_cast<double>(macs) / cpu_seconds * 1e-9 : 0; }
  double kcycles_per_second() const { return cpu_seconds > 0 ? static_cast<double>(cycles) / cpu_seconds * 1e-3 : 0; }
};

// A 3x3 convolution of 14x14 maps in the native profile, with as many channels as the scratchpads hold, repeated
// `tiles` times: loads, GEMM, requantization and store, ordered by tokens.
fuzz::Program convolution(const spec::Config& config, int tiles);

// Measures the program on the behavioral simulator, once for each kernel set that this machine supports.
Expected<std::vector<Measurement>> behavioral(const fuzz::Program& program, const std::string& name, int runs = 7);
// Measures a VTA program file likewise (configuration default).
Expected<std::vector<Measurement>> behavioral_vta(const std::filesystem::path& file, int runs = 7);
// Measures the program on any simulator that runs in this process, whose CPU time is counted.
Expected<Measurement> measure(Simulator& simulator, const fuzz::Program& program, const std::string& name,
                              const std::string& simulator_name, int runs = 3);

}  // namespace tenon::sim::bench
