// An Accelerator over any Simulator: buffers in the simulator's memory, registers, and simulated time.
//
// Time: wait_idle's limit counts simulated time at kNominalHz, not wall time, so that a program ends the same way on a
// fast machine, on a slow machine and under a sanitizer.
#pragma once

#include <memory>
#include <string>

#include "driver/accelerator.h"
#include "sim/simulator.h"

namespace tenon::driver {

inline constexpr double kNominalHz = 100e6;

std::unique_ptr<Accelerator> make_simulated(std::string uri, std::unique_ptr<sim::Simulator> simulator,
                                            bool cycle_accurate, const spec::MemoryTiming& memory = {});

}  // namespace tenon::driver
