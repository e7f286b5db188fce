// The register protocol of a launch in its parts, for transports that perform them at the other end of a connection.
#pragma once

#include <chrono>

#include "driver/accelerator.h"

namespace tenon::driver {

// The protocol of a launch as three operations, on a device whose register accesses are round trips. The functions of
// accelerator.h with the same names use it where a device has one.
class Launcher {
 public:
  virtual ~Launcher() = default;
  // May return before the start has happened; its error is finish()'s then.
  virtual Status start(const Launch& launch) = 0;
  virtual Status finish(std::chrono::nanoseconds limit) = 0;
  virtual Expected<Counters> read_counters() = 0;
};

// The second half of finish(): the device is idle, or the limit of the wait has passed.
Status conclude(Accelerator& accelerator, bool idle, std::chrono::nanoseconds limit);

}  // namespace tenon::driver
