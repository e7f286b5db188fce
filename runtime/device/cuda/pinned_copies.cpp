#include "runtime/device/cuda/pinned_copies.h"

#include <algorithm>
#include <cstring>

namespace tenon::runtime::cuda {

bool PinnedCopies::is_ready(const Driver& driver) {
  if (was_refused_ || chunks_.back().memory) return !was_refused_;
  for (Chunk& chunk : chunks_) {
    void* memory = nullptr;
    was_refused_ |= driver.allocate_host(&memory, kChunkBytes) != 0;
    if (was_refused_) break;
    chunk.memory = static_cast<std::byte*>(memory);
    was_refused_ |= driver.create_event(&chunk.copied, 0) != 0;
  }
  if (was_refused_) release(driver);
  return !was_refused_;
}

void PinnedCopies::release(const Driver& driver) {
  for (Chunk& chunk : chunks_) {
    if (chunk.copied) (void)driver.destroy_event(chunk.copied);
    if (chunk.memory) (void)driver.release_host(chunk.memory);
    chunk = {};
  }
}

int PinnedCopies::wait(const Driver& driver, Chunk& chunk) {
  if (!chunk.in_flight) return 0;
  chunk.in_flight = false;
  return driver.wait_for(chunk.copied);
}

int PinnedCopies::record(const Driver& driver, Chunk& chunk, Stream* stream) {
  chunk.in_flight = true;
  return driver.record(chunk.copied, stream);
}

int PinnedCopies::upload(const Driver& driver, Address to, std::span<const std::byte> from, Stream* stream) {
  if (from.size() < kLeastBytes || !is_ready(driver)) return driver.upload(to, from.data(), from.size(), stream);
  for (size_t begin = 0, i = 0; begin < from.size(); begin += kChunkBytes, ++i) {
    Chunk& chunk = chunks_[i % chunks_.size()];
    const std::span<const std::byte> part = from.subspan(begin, std::min(kChunkBytes, from.size() - begin));
    if (const int status = wait(driver, chunk); status != 0) return status;
    std::memcpy(chunk.memory, part.data(), part.size());
    if (const int status = driver.upload(to + begin, chunk.memory, part.size(), stream); status != 0) return status;
    if (const int status = record(driver, chunk, stream); status != 0) return status;
  }
  return 0;
}

int PinnedCopies::download(const Driver& driver, std::span<std::byte> to, Address from, Stream* stream) {
  if (to.size() < kLeastBytes || !is_ready(driver)) return driver.download(to.data(), from, to.size(), stream);
  const auto part = [&](size_t i) {
    return to.subspan(i * kChunkBytes, std::min(kChunkBytes, to.size() - i * kChunkBytes));
  };
  const auto begin = [&](size_t i) {
    Chunk& chunk = chunks_[i % chunks_.size()];
    if (const int status = wait(driver, chunk); status != 0) return status;
    if (const int status = driver.download(chunk.memory, from + i * kChunkBytes, part(i).size(), stream); status != 0)
      return status;
    return record(driver, chunk, stream);
  };
  const size_t count = (to.size() + kChunkBytes - 1) / kChunkBytes;
  if (const int status = begin(0); status != 0) return status;
  for (size_t i = 0; i < count; ++i) {
    if (i + 1 < count)
      if (const int status = begin(i + 1); status != 0) return status;
    Chunk& chunk = chunks_[i % chunks_.size()];
    if (const int status = wait(driver, chunk); status != 0) return status;
    std::memcpy(part(i).data(), chunk.memory, part(i).size());
  }
  return 0;
}

}  // namespace tenon::runtime::cuda
