// Replays a reproducer on a device and returns the first difference.
#pragma once

#include <string>

#include "driver/bringup/reproducer.h"

namespace tenon::driver {

// The placement of a reproducer in a device's memory: on a simulator at its own addresses, elsewhere in one buffer, all
// addresses increased by `shift`.
struct Placement {
  Buffer buffer;  // empty on a simulator
  uint64_t shift = 0;
};

// Resets the device, tokens included, and writes the reproducer's memory. The device must have the reproducer's
// configuration and enough memory.
Expected<Placement> load(Accelerator& accelerator, const Reproducer& reproducer);
// The launch with the addresses of the placement.
Launch relocated(const Launch& launch, const Placement& placement);

// A message with the first byte of `found` that differs from the region; empty: all bytes are equal.
std::string difference_of(const Region& region, std::span<const std::byte> found);

// A message with the first expected byte that differs; empty: all bytes are equal.
Expected<std::string> compare_expected(Accelerator& accelerator, const Reproducer& reproducer,
                                       const Placement& placement);

// Runs all launches and returns a message with the first difference; empty: no difference. A device that cannot run the
// reproducer is an error.
Expected<std::string> replay(Accelerator& accelerator, const Reproducer& reproducer);

// Opens `device` for the reproducer: a configuration name in its URI is replaced by the reproducer's configuration (by
// a file in `scratch` where no named configuration equals it), and its memory is large enough.
Expected<std::unique_ptr<Accelerator>> open_for(const Reproducer& reproducer, const std::string& device,
                                                const std::filesystem::path& scratch);

}  // namespace tenon::driver
