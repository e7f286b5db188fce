// Memory that CPU and accelerator share: one u-dma-buf, contiguous, cached by the CPU and not coherent with it.
//
// Semantics: the mapped bytes are what the CPU sees through its cache. The accelerator sees what was synchronized for
// the device, the CPU sees the accelerator's bytes when they were synchronized for the CPU; whole cache lines move.
// Where the kernel says that hardware keeps both alike (dma_coherent), or the user does (`sync` is false), nothing is
// done.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "driver/uio/files.h"

namespace tenon::driver::uio {

// Of the Cortex-A53; the Cortex-A9's have half of it, and two of them do as well.
inline constexpr uint64_t kCacheLine = 64;

class Memory {
 public:
  // `name` as in /dev/NAME; fails where another process holds it.
  static Expected<Memory> open(const Files& files, const std::string& name, bool sync);

  uint64_t physical() const { return physical_; }
  uint64_t size() const { return size_; }

  // Offsets into this memory; the range was checked by the caller.
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
