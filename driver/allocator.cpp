#include "driver/allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tenon::driver {

Expected<uint64_t> Allocator::allocate(uint64_t bytes, uint64_t alignment) {
  if (bytes == 0) return error("a buffer has 0 bytes, must have at least one", "allocate");
  if (!std::has_single_bit(alignment)) {
    return error(fmt::format("alignment is {}, must be a power of two", alignment), "allocate");
  }
  const auto align = [&](uint64_t x) { return (x + alignment - 1) & ~(alignment - 1); };
  // Sizes are compared by subtraction: sums of the caller's values could wrap.
  const auto fits = [&](uint64_t at, uint64_t from, uint64_t end) {
    return at >= from && at <= end && bytes <= end - at;
  };
  uint64_t from = std::max(base_, kFirstAddress);
  uint64_t largest = 0;
  uint64_t found = 0;
  bool ok = false;
  const auto try_hole = [&](uint64_t end) {
    if (end > from) largest = std::max(largest, end - from);
    if (!fits(align(from), from, end)) return false;
    found = align(from);
    return ok = true;
  };
  for (const auto& [address, length] : blocks_) {
    if (try_hole(address)) break;
    from = address + length;
  }
  if (!ok && !try_hole(base_ + size_)) {
    return error(
        fmt::format("the device has no room for {} bytes aligned to {}: {} of {} bytes are in use, the largest "
                    "hole has {}",
                    bytes, alignment, used_, size_, largest),
        "allocate", "free buffers, or give the device more memory: for a simulator, append ?memory=1G to its name");
  }
  blocks_.emplace(found, bytes);
  used_ += bytes;
  return found;
}

Status Allocator::release(uint64_t address, uint64_t bytes) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end() || block->second != bytes) {
    return error(
        fmt::format("no live buffer has address {:#x} and {} bytes: freed twice, or never allocated", address, bytes),
        "free", {}, Fault::kInternal);
  }
  used_ -= bytes;
  blocks_.erase(block);
  return {};
}

bool Allocator::contains(uint64_t address, uint64_t bytes) const {
  auto block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return false;
  --block;
  const uint64_t offset = address - block->first;
  return offset <= block->second && bytes <= block->second - offset;
}

}  // namespace tenon::driver
