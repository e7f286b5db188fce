// Memory of tensors that no arena has: results that a plan does not place, and what a session returns. A tensor's
// memory comes back when its last handle goes, on any thread, and then is the memory of a later tensor of its size
// or less. So a session that repeats its work asks the system for no memory after its first run.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/tensor.h"

namespace tenon::runtime {

class BufferPool {
 public:
  BufferPool();
  // A pool that has at most `bytes` from the system as long as its user has at most so many bytes of buffers by
  // footprint(): idle memory is freed now, and for memory of another class, and no buffer is larger than its class.
  void limit(size_t bytes);
  size_t held() const;  // bytes from the system
  size_t used() const;  // of buffers that are not idle

  // Memory aligned for tensors, with unknown contents, which may outlive the pool; no memory if there is not enough.
  // Its capacity is that of its size class, or of a larger class that has idle memory.
  Storage take(size_t bytes);
  // A run has ended: frees memory that nothing has used for many runs.
  void age();

  // The bytes of the smallest class that holds `bytes`: at most a quarter more, or a multiple of 64.
  static size_t rounded(size_t bytes);
  // What a buffer for so many bytes takes from the system.
  static size_t footprint(size_t bytes);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tenon::runtime
