// The identity of a device's accelerator, by its registers: for transports whose hardware comes from a file.
#pragma once

#include <cstdint>
#include <string>

#include "driver/accelerator.h"

namespace tenon::driver {

// The configuration hash in the device's registers.
Expected<uint64_t> read_hash(Accelerator& accelerator);

// Checks that the device has the configuration of its info(). The error names both hashes and, where the device has a
// named configuration, the fields that differ.
Status check_identity(Accelerator& accelerator);

// The configuration that a URI names; a default one where it names none, until identify() tells the device's.
Expected<spec::Config> stated_config(const std::string& name);

// The configuration of a device, which is reset: that of its info() where the URI states it, which must be the
// device's, else the named configuration that has the device's hash.
Expected<spec::Config> identify(Accelerator& accelerator, bool is_stated);

// Resets the device to the state that a launch expects, after any launch and after a killed client: idle, without
// tokens and without ap_done.
Status reset(Accelerator& accelerator);

}  // namespace tenon::driver
