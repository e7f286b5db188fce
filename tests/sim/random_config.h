// Random configurations within all limits, for properties that must hold for every configuration.
#pragma once

#include <algorithm>
#include <bit>

#include "hw/spec/config.h"
#include "support/random.h"

namespace tenon::sim::testing {

// `max_bytes` bounds each scratchpad, for tests that fill or simulate it; without it, depths go up to their limits.
inline spec::Config random_config(uint64_t seed, int64_t max_bytes = int64_t{1} << 18) {
  Random random(seed * 7919 + 3);
  const auto power = [&](int64_t low, int64_t high) {
    return int64_t{1} << random.between(std::bit_width(uint64_t(low)) - 1, std::bit_width(uint64_t(high)) - 1);
  };
  for (;;) {
    spec::Config config;
    config.name = "random-" + std::to_string(seed);
    config.block_in = static_cast<int>(power(2, 64));
    config.block_out = static_cast<int>(power(2, 64));
    config.axi_data_bits = static_cast<int>(power(32, 512));
    config.max_burst_beats = static_cast<int>(power(1, 256));
    config.queue_depth = static_cast<int>(power(1, 64));
    config.base = random.chance(70);
    config.native = !config.base || random.chance(70);
    config.counters = random.chance(60);
    config.weight_engine = config.native || random.chance(60);
    config.packed_products = random.chance(40);
    config.address_bits = random.chance(50) ? 64 : static_cast<int>(random.between(32, 63));
    config.alu_multiply_passes = config.base ? static_cast<int>(random.between(0, 2)) : 1;
    // Drawn from a generator of its own, so that a seed keeps the other members.
    Random small(seed * 104729 + 17);
    config.accumulator_engine = config.weight_engine || small.chance(50);
    config.in_order = !config.native && small.chance(50);
    if (config.in_order) config.queue_depth = 1;
    config.progress = small.chance(70);
    if (config.base && config.alu_multiply_passes != 2 && small.chance(50)) {
      config.alu_passes = 1 << small.between(0, config.block_out > 2 ? 2 : 1);
    }
    config.serial_products = !config.packed_products && small.chance(30);
    config.overlapping_stores = !config.in_order && small.chance(60);
    if (small.chance(60)) {
      config.read_beats = static_cast<int>(std::max<int64_t>(1 << small.between(5, 10), config.max_burst_beats));
    }
    config.own_lanes = config.native && config.block_in == config.block_out && small.chance(70);
    config.results_to_inp = config.native && config.block_in == config.block_out && small.chance(60);
    config.window_maximum = config.native && small.chance(60);
    config.requantizer_passes = config.native && random.chance(40) ? static_cast<int>(power(1, config.block_out)) : 1;
    for (size_t m = 0; m < spec::kScratchpads; ++m) {
      const auto memory = static_cast<spec::Memory>(m);
      const int64_t element = config.element_bytes(memory);
      config.bytes[m] = element * power(2, std::clamp<int64_t>(max_bytes / element, 2, 16384));
    }
    if (spec::validate(config, config.name)) return config;
  }
}

}  // namespace tenon::sim::testing
