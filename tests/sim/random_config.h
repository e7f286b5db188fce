// Random configurations within all limits, for properties that must hold for every configuration.
#pragma once

#include <bit>

#include "hw/spec/config.h"
#include "support/random.h"

namespace tenon::sim::testing {

inline spec::Config random_config(uint64_t seed) {
  Random random(seed * 7919 + 3);
  const auto power = [&](int low, int high) {
    return 1 << random.between(std::bit_width(unsigned(low)) - 1, std::bit_width(unsigned(high)) - 1);
  };
  for (;;) {
    spec::Config config;
    config.name = "random-" + std::to_string(seed);
    config.block_in = power(2, 64);
    config.block_out = power(2, 64);
    config.axi_data_bits = power(32, 512);
    config.max_burst_beats = power(1, 256);
    config.queue_depth = power(2, 64);
    config.base = random.chance(70);
    config.native = !config.base || random.chance(70);
    // Scratchpads are small and large, so that addresses of all widths occur; large weights would only fill memory.
    for (size_t m = 0; m < spec::kScratchpads; ++m) {
      const auto memory = static_cast<spec::Memory>(m);
      config.bytes[m] = int64_t{config.element_bytes(memory)} * power(2, memory == spec::Memory::kWgt ? 128 : 2048);
    }
    if (spec::validate(config, config.name)) return config;
  }
}

}  // namespace tenon::sim::testing
