// Small accelerator programs with expected results, for the self-test of a device.
#pragma once

#include "driver/bringup/reproducer.h"

namespace tenon::driver {

// A copy from DRAM to a scratchpad to DRAM: `vectors` output vectors of random bytes, `passes` times. In the base
// profile where the configuration has it; in the native profile the data passes the tensor core with an identity
// matrix.
Reproducer loopback(const spec::Config& config, int64_t vectors, int64_t passes, uint64_t seed);

// A product of random int8 matrices, `rows` x (2 block_in) by (2 block_in) x block_out, requantized in the native
// profile, its low bytes in the base profile.
Reproducer gemm(const spec::Config& config, spec::Profile profile, uint64_t seed);

// A 3x3 convolution of the base profile with zeros around the image: `size` x `size` x block_in to `size` x `size` x
// block_out, the low bytes of the sums. The configuration must have the base profile, and scratchpads for
// (size + 2)^2 inputs, size^2 accumulators, 9 blocks of weights and 9 micro-ops.
Reproducer convolution(const spec::Config& config, int64_t size, uint64_t seed);

}  // namespace tenon::driver
