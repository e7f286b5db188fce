// The allocator of device memory, by address: first fit over the holes between live blocks.
//
// Semantics: blocks never overlap; each starts at a multiple of its alignment. Adjacent holes merge at once, because
// holes are not stored: a hole is the range between two live blocks. Addresses below kFirstAddress are never allocated,
// so that a base address which the caller forgot to set (0) is in no buffer.
#pragma once

#include <cstdint>
#include <map>

#include "support/diagnostic.h"

namespace tenon::driver {

class Allocator {
 public:
  static constexpr uint64_t kFirstAddress = 4096;

  // Allocates in [base, base + size).
  explicit Allocator(uint64_t size, uint64_t base = 0) : base_(base), size_(size) {}

  // `alignment` must be a power of two, `bytes` positive.
  Expected<uint64_t> allocate(uint64_t bytes, uint64_t alignment);
  // Frees the block of `bytes` at `address`; any other range (a second free, a part of a block) is an error and changes
  // nothing.
  Status release(uint64_t address, uint64_t bytes);
  // Whether [address, address + bytes) is inside one live block.
  bool contains(uint64_t address, uint64_t bytes) const;
  uint64_t used() const { return used_; }
  uint64_t size() const { return size_; }

 private:
  uint64_t base_, size_;
  uint64_t used_ = 0;
  std::map<uint64_t, uint64_t> blocks_;  // address -> bytes
};

}  // namespace tenon::driver
