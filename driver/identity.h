// The identity of a device's accelerator, by its registers: for transports whose hardware comes from a file.
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

// Checks that the device has the configuration of its info(). The error names both hashes and, where the device has a
// named configuration, the fields that differ.
Status check_identity(Accelerator& accelerator);

// Resets the device to the state that a launch expects, after any launch and after a killed client: idle, without
// tokens and without ap_done.
Status reset(Accelerator& accelerator);

}  // namespace tenon::driver
