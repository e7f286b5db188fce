// Saves a mismatch: a reproducer on disk, and a sentence for the user.
#pragma once

#include <string>

#include "driver/bringup/reproducer.h"

namespace tenon::driver {

// Replays the reproducer on a new device of the same URI, or on `device` where no new one can be opened, records the
// result, and writes the reproducer to `directory` (empty: mismatch-N in the working directory). Returns the sentence:
// the path and the command of the replay, or the reason why the reproducer cannot be saved.
std::string keep_mismatch(Reproducer reproducer, Accelerator& device, const std::string& directory);

}  // namespace tenon::driver
