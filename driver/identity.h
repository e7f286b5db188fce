// Which accelerator a device has, by its registers: for transports whose hardware came from elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "driver/accelerator.h"

namespace tenon::driver {

// The configuration hash in the device's registers.
Expected<uint64_t> read_hash(Accelerator& accelerator);

// The named configuration that has this hash.
std::optional<spec::Config> find_config(uint64_t hash);

// Whether the device has the configuration that its info() says. The error names both and, where the one found is a
// named configuration, the fields that differ.
Status check_identity(Accelerator& accelerator);

// Leaves the device as a launch expects it, whatever the last one or a client that died did: idle, no tokens, no
// ap_done.
Status reset(Accelerator& accelerator);

}  // namespace tenon::driver
