// Saves a mismatch: a bundle on disk, and a sentence for the user.
#pragma once

#include <string>

#include "driver/bringup/bundle.h"

namespace tenon::driver {

// Replays the bundle on a new device of the same URI, or on `device` where no new one can be opened, records the
// result, and writes the bundle to `directory` (empty: mismatch-N in the working directory). Returns the sentence: the
// path and the command of the replay, or the reason why the bundle cannot be saved.
std::string keep_mismatch(Bundle bundle, Accelerator& device, const std::string& directory);

}  // namespace tenon::driver
