// The transport behavioral: -- the fast model in this process.
#pragma once

#include "driver/accelerator.h"
#include "driver/uri.h"
#include "sim/behavioral/behavioral.h"

namespace tenon::driver {

Transport behavioral_transport();

// Reads the behavioral simulator's options, which lockstep supports too.
sim::BehavioralOptions behavioral_options(Options& options);

// Reads how the memory of a simulated device answers, which all simulators have.
spec::MemoryTiming memory_timing(Options& options);

}  // namespace tenon::driver
