// How fast the simulators are: the library behind `tenon bench sim`.
//
// Figures are CPU time of this process, the median of several runs; a run is one launch, from start to the end of the
// stream, race detector on, memory already filled.
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

// A 3x3 convolution of 14x14 maps in the native profile, as many channels as the scratchpads hold, `tiles` times over:
// loads, GEMM, requantization and store, tied by tokens.
fuzz::Program convolution(const spec::Config& config, int tiles);

// The program on the behavioral simulator, once for each kernel set that runs on this machine.
Expected<std::vector<Measurement>> behavioral(const fuzz::Program& program, const std::string& name, int runs = 7);
// The same for a VTA program file (configuration default).
Expected<std::vector<Measurement>> behavioral_vta(const std::filesystem::path& file, int runs = 7);
// The program on any simulator; CPU time is this process's, so the simulator must run in it.
Expected<Measurement> measure(Simulator& simulator, const fuzz::Program& program, const std::string& name,
                              const std::string& simulator_name, int runs = 3);

}  // namespace tenon::sim::bench
