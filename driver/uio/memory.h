// The memory that CPU and accelerator share: one u-dma-buf, contiguous, cached by the CPU and not coherent with its
// cache.
//
// Semantics: the mapped bytes are the CPU's view through its cache. The accelerator sees bytes that were synchronized
// for the device, the CPU sees the accelerator's bytes after they were synchronized for the CPU, in whole cache lines.
// Where the kernel reports coherent hardware (dma_coherent), or the user does (`sync` is false), no synchronization is
// needed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "driver/uio/files.h"

namespace tenon::driver::uio {

// The cache line of the Cortex-A53; two lines of the Cortex-A9.
inline constexpr uint64_t kCacheLine = 64;

class Memory {
 public:
  // `name` as in /dev/NAME; an error where another process has locked the device.
  static Expected<Memory> open(const Files& files, const std::string& name, bool sync);

  uint64_t physical() const { return physical_; }
  uint64_t size() const { return size_; }

  // Offsets into this memory; the caller has checked the range.
  Status write(uint64_t offset, std::span<const std::byte> data);
  Status read(uint64_t offset, std::span<std::byte> data);

 private:
  enum class Direction : uint32_t { kToDevice = 1, kFromDevice = 2 };
  explicit Memory(const Files& files) : files_(files) {}
  Status sync(uint64_t begin, uint64_t end, Direction direction);

  Files files_;
  std::string attributes_;  // the directory in sysfs, with a slash
  Fd fd_;
  Mapping mapping_;
  uint64_t physical_ = 0, size_ = 0;
  bool sync_ = true;
};

}  // namespace tenon::driver::uio
