// A UIO device: the accelerator's register window and its interrupt.
//
// Semantics: accesses are 32 bits wide, happen once and in program order, and are not cached; memory writes before a
// register write are visible when the device sees the register write. The interrupt is level-triggered: it is raised
// again as long as it is unmasked and not acknowledged in the accelerator.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "driver/uio/files.h"

namespace tenon::driver::uio {

class Device {
 public:
  // Opens /dev/uioN, N being `index`, and maps its window.
  static Expected<Device> open(const Files& files, int index);

  bool emulated() const { return registers_.get() >= 0; }

  Expected<uint32_t> read(uint32_t offset);
  Status write(uint32_t offset, uint32_t value);

  // Unmasks the interrupt. The caller reads the status register after unmask() and before wait(), so that no interrupt
  // is lost.
  Status unmask();
  // Waits for the interrupt, at most `limit`; returns the time of the wait by the device's clock, which is the wall
  // clock on a board. The wait may end earlier, without an interrupt.
  Expected<std::chrono::nanoseconds> wait(std::chrono::nanoseconds limit);

  // Locks the device; an error where another process has the lock.
  Status lock();

 private:
  std::string path_;
  Fd fd_;         // of /dev/uioN
  Fd registers_;  // of an emulated PL
  Mapping window_;
  volatile uint32_t* words_ = nullptr;
  bool interrupts_ = true;
};

// Locks the file for this process until the descriptor is closed, also by kill -9. The error names the process that has
// the lock.
Status lock(const Fd& fd, const std::string& path);

}  // namespace tenon::driver::uio
