// Small accelerator programs whose results are known: what a device is tried with before it is trusted.
#pragma once

#include "driver/bringup/bundle.h"

namespace tenon::driver {

// DRAM to scratchpad to DRAM and nothing else: `vectors` output vectors of random bytes, `passes` times over. Base
// profile where the configuration has it; a native one takes the detour through the tensor core with a unit matrix.
Bundle loopback(const spec::Config& config, int64_t vectors, int64_t passes, uint64_t seed);

// One product of random int8 matrices, `rows` x (2 block_in) by (2 block_in) x block_out, requantized in the native
// profile, its low bytes in the base profile.
Bundle gemm(const spec::Config& config, spec::Profile profile, uint64_t seed);

}  // namespace tenon::driver
