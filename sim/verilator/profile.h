// The profile of a Verilated model: how often each branch of the compiled RTL is taken, for the compiler of the final
// model.
//
// Why: simulation time of a Verilated model is spent in branches that the compiler cannot predict. Clang counts the
// statements of the source (-fprofile-instr-generate), so counters of a build without optimization, which takes a third
// of the time, serve an optimized one.
#pragma once

#include <filesystem>

#include "hw/spec/config.h"
#include "support/diagnostic.h"

namespace tenon::sim {

// Runs programs on an instrumented model (abi.h) in this process, and writes its raw profile, which llvm-profdata
// reads, to `profile`. The programs are a convolution, where the configuration has the native profile, and random
// programs. They are the same at each call, and end after a limited number of cycles; that an RTL does not complete
// them is no error, since a profile changes the speed of a model alone.
Status write_profile(const spec::Config& config, const std::filesystem::path& model,
                     const std::filesystem::path& profile);

}  // namespace tenon::sim
