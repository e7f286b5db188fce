// Copies between the host's pageable memory and a GPU, through pinned memory: the GPU copies one chunk while the host
// copies the next one. (NVIDIA, "CUDA C++ Best Practices Guide", sections on pinned memory and on overlapped
// transfers.)
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "runtime/device/cuda/driver.h"

namespace tenon::runtime::cuda {

// Statuses are the driver's; 0: no error. The object does not own its chunks' memory: release() ends it.
class PinnedCopies {
 public:
  static constexpr size_t kChunkBytes = 4 << 20;
  // The driver copies less by itself, into its own queue.
  static constexpr size_t kLeastBytes = 64 << 10;

  // Queues the copy on the stream; the host's memory may change as soon as it returns.
  int upload(const Driver& driver, Address to, std::span<const std::byte> from, Stream* stream);
  // The data is there when the stream has ended its work.
  int download(const Driver& driver, std::span<std::byte> to, Address from, Stream* stream);
  // The stream must have ended its work.
  void release(const Driver& driver);

 private:
  struct Chunk {
    std::byte* memory = nullptr;
    Event* copied = nullptr;  // after the last copy from or to it
    bool in_flight = false;
  };
  // Whether the chunks have memory, which is asked for once; without it the driver copies from pageable memory.
  bool is_ready(const Driver& driver);
  static int wait(const Driver& driver, Chunk& chunk);
  static int record(const Driver& driver, Chunk& chunk, Stream* stream);

  std::array<Chunk, 2> chunks_;
  bool was_refused_ = false;
};

}  // namespace tenon::runtime::cuda
