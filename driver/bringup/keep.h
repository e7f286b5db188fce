// What a mismatch leaves behind: a bundle on disk, and the sentence that tells the user.
#pragma once

#include <string>

#include "driver/bringup/bundle.h"

namespace tenon::driver {

// Replays the bundle on a fresh device of the same URI, or on `device` where there is none, notes what that shows, and
// writes the bundle to `directory` (empty: mismatch-N here). Returns the sentence: where it is and how to replay it, or
// why it could not be kept.
std::string keep_mismatch(Bundle bundle, Accelerator& device, const std::string& directory);

}  // namespace tenon::driver
