// Device memory, handed out by address: first fit over the holes between live blocks.
//
// Semantics: blocks never overlap; each starts at a multiple of its alignment. Freed neighbours merge at once, because
// holes are not stored: they are what lies between the live blocks. Addresses below kFirstAddress are never handed
// out, so that a base address which somebody forgot to set (0) points at no buffer.
#pragma once

#include <cstdint>
#include <map>

#include "support/diagnostic.h"

namespace tenon::driver {

class Allocator {
 public:
  static constexpr uint64_t kFirstAddress = 4096;

  // Hands out [base, base + size).
  explicit Allocator(uint64_t size, uint64_t base = 0) : base_(base), size_(size) {}

  // `alignment` must be a power of two, `bytes` positive.
  Expected<uint64_t> allocate(uint64_t bytes, uint64_t alignment);
  // Ends the block that starts at `address` and has `bytes`; anything else (a second free, a part of a block) is an
  // error and changes nothing.
  Status release(uint64_t address, uint64_t bytes);
  // Whether [address, address + bytes) lies inside one live block.
  bool contains(uint64_t address, uint64_t bytes) const;
  uint64_t used() const { return used_; }
  uint64_t size() const { return size_; }

 private:
  uint64_t base_, size_;
  uint64_t used_ = 0;
  std::map<uint64_t, uint64_t> blocks_;  // address -> bytes
};

}  // namespace tenon::driver
