// Reproducers (driver/bringup) of launches that go wrong on a device. Devices repeat their faults, so the inputs are
// run once more with a recorder in between.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "driver/bringup/reproducer.h"
#include "runtime/vm/session.h"

namespace tenon::runtime {

// The texts of the reproducer.
struct MismatchNote {
  std::string origin;     // the command that ran the executable
  std::string reported;   // the message of the failure
  std::string directory;  // of the reproducer; empty: mismatch-N in the current directory
};

// The expected bytes of a region of the launch's memory; none if the device itself reported the fault.
using ExpectedBytes = std::function<std::optional<driver::Region>(const driver::Launch& launch)>;

// Keeps the failing launch of a run on `options.accelerators` that ended with an error, of a device or of the hook.
// Returns a sentence for the user: where the reproducer is, or why there is none; empty if no launch failed.
std::string keep_failure(const Executable& executable, SessionOptions options, std::span<const Tensor> inputs,
                         const MismatchNote& note, const ExpectedBytes& expected = {});

// Devices computed different results: keeps the first launch whose outputs on `wrong` differ from those on `good`,
// each of which has a device for each configuration.
std::string keep_difference(const Executable& executable, const SessionOptions& options,
                            std::span<driver::Accelerator* const> good, std::span<driver::Accelerator* const> wrong,
                            std::span<const Tensor> inputs, const MismatchNote& note);

}  // namespace tenon::runtime
