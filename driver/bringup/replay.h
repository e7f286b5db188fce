// Runs a bundle on a device and says what differs.
#pragma once

#include <string>

#include "driver/bringup/bundle.h"

namespace tenon::driver {

// Where a bundle lies in a device's memory: on a simulator at its own addresses, elsewhere in one buffer, all addresses
// moved by `shift`.
struct Placed {
  Buffer buffer;  // empty on a simulator
  uint64_t shift = 0;
};

// Writes the bundle's memory and clears tokens and whatever the last run left. The device must have the bundle's
// configuration and enough memory.
Expected<Placed> place(Accelerator& accelerator, const Bundle& bundle);
Launch moved(const Launch& launch, const Placed& placed);

// The first byte of `found` that is not the region's; empty: all are there.
std::string difference_of(const Region& region, std::span<const std::byte> found);

// The first of the expected bytes that is another one; empty: all are there.
Expected<std::string> compare_expected(Accelerator& accelerator, const Bundle& bundle, const Placed& placed);

// Runs all launches: the first difference, in one line or several; empty: there is none. An error is that of a device
// that cannot run the bundle at all.
Expected<std::string> replay(Accelerator& accelerator, const Bundle& bundle);

// Opens `device` for the bundle: where its URI names a configuration, that is the bundle's own (as a file in `scratch`
// where no named one equals it), with memory enough.
Expected<std::unique_ptr<Accelerator>> open_for(const Bundle& bundle, const std::string& device,
                                                const std::filesystem::path& scratch);

}  // namespace tenon::driver
