// Threads that share the work of one call at a time, and each one's memory for kernels.
//
// No oversubscription: as many threads as the process may use processors (its affinity, as `taskset` sets it), the
// caller's among them; a call that comes while another one runs, or from inside of one, runs in its own thread alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace tenon::runtime {

// Memory of one thread for kernels: taken and given back as a stack, kept for the next call.
class Arena {
 public:
  Arena();
  Arena(Arena&&) noexcept;
  Arena& operator=(Arena&&) noexcept;
  ~Arena();

  void* allocate(int64_t bytes);  // aligned to 64; nullptr where there is none
  // Gives back that block, and all that were taken after it.
  void release(void* memory);
  // What is in use, to be given back to later.
  size_t mark() const;
  void reset(size_t mark);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The processors that this process may use.
unsigned usable_processors();

class ThreadPool {
 public:
  // With so many threads, the caller's among them; 0: usable_processors().
  explicit ThreadPool(unsigned threads = 0);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  // The one that all share who ask for no number of threads: made when it is first asked for, never ended.
  static ThreadPool& of_process();

  unsigned threads() const;

  // Runs task(arena, index) for each index below `count`, in any order, `threads()` at a time; an arena is its thread's
  // own. Where tasks return false no further ones begin, and the result is the smallest index whose task did: it does
  // not depend on the threads. Else -1.
  int64_t run(int64_t count, const std::function<bool(Arena&, int64_t)>& task);

  // An arena for the time of the call.
  void with_arena(const std::function<void(Arena&)>& use);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::runtime
