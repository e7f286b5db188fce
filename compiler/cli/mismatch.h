// What a mismatch leaves behind: a bundle on disk, and the sentence that tells the user.
#pragma once

#include <string>

#include "driver/bringup/bundle.h"
#include "sim/fuzz/program.h"

namespace tenon::cli {

// Replays the bundle on a fresh device of the same URI, or on `device` where there is none, notes what that shows, and
// writes the bundle to `directory` (empty: mismatch-N here). Returns the sentence: where it is and how to replay it, or
// why it could not be kept.
std::string keep_mismatch(driver::Bundle bundle, driver::Accelerator& device, const std::string& directory);

// The launches and memory of a random program.
driver::Bundle bundle_of(const sim::fuzz::Program& program);

}  // namespace tenon::cli
