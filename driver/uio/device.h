// One UIO device: the accelerator's register window and its interrupt.
//
// Semantics: accesses are 32 bits wide, happen once and in program order, and are not cached; what was written to
// memory before a register write is there when the device sees the write. The interrupt is a level: it comes again as
// long as it is unmasked and not acknowledged in the accelerator.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "driver/uio/files.h"

namespace tenon::driver::uio {

class Device {
 public:
  // `number` of /dev/uioN, and where its window is mapped.
  static Expected<Device> open(const Files& files, int number);

  bool played() const { return registers_.get() >= 0; }

  Expected<uint32_t> read(uint32_t offset);
  Status write(uint32_t offset, uint32_t value);

  // Lets the interrupt come. To be called before the look at the register that says whether it is worth waiting.
  Status unmask();
  // Waits for the interrupt, at most `limit`; returns how long by the device's clock, which is the one on the wall on a
  // board. It may return earlier, without an interrupt.
  Expected<std::chrono::nanoseconds> wait(std::chrono::nanoseconds limit);

  // Fails where another process holds the device.
  Status lock();

 private:
  std::string path_;
  Fd fd_;         // of /dev/uioN
  Fd registers_;  // of a played PL
  Mapping window_;
  volatile uint32_t* words_ = nullptr;
  bool interrupts_ = true;
};

// Takes the file for this process until the descriptor is closed, also by kill -9. The error names the process that has
// it.
Status lock(const Fd& fd, const std::string& path);

}  // namespace tenon::driver::uio
