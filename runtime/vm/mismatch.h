// What an executable that goes wrong on a device leaves behind: the launch that did, as a bundle (driver/bringup).
// Devices repeat what they do, so the inputs are run once more with a recorder in between.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "driver/bringup/bundle.h"
#include "runtime/vm/session.h"

namespace tenon::runtime {

// What goes into the bundle beside the launch.
struct MismatchNote {
  std::string origin;     // what was being done, as a command
  std::string reported;   // what was said
  std::string directory;  // of the bundle; empty: mismatch-N here
};

// The bytes that should have been there, in a launch's memory; none where the device itself says what is wrong.
using ExpectedBytes = std::function<std::optional<driver::Region>(const driver::Launch& launch)>;

// A run on `options.accelerator` ended with an error, of the device or of the hook. Returns the sentence about the
// bundle, or why there is none; empty where it was no launch that failed.
std::string keep_failure(const Executable& executable, SessionOptions options, std::span<const Tensor> inputs,
                         const MismatchNote& note, const ExpectedBytes& expected = {});

// Two devices gave different results: keeps the first launch whose outputs on `wrong` are not those on `good`.
std::string keep_difference(const Executable& executable, const SessionOptions& options, driver::Accelerator& good,
                            driver::Accelerator& wrong, std::span<const Tensor> inputs, const MismatchNote& note);

}  // namespace tenon::runtime
