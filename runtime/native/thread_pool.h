// A pool of threads that share the work of one call at a time, and each thread's memory for kernels.
//
// No oversubscription: there are as many threads as processors that the process may use (its affinity, as `taskset`
// sets it), the caller's included; a call that comes while another one runs, or from inside a call, runs in its own
// thread alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "support/function_ref.h"

namespace tenon::runtime {

// Memory of one thread for kernels: allocated and released as a stack, kept for the next call.
class Arena {
 public:
  // What the arenas of a pool have together.
  class Account {
   public:
    bool is_limited() const { return limit != INT64_MAX; }
    bool take(int64_t bytes) {
      if ((used += bytes) <= limit) return true;
      used -= bytes;
      refused += bytes;
      return false;
    }
    std::atomic<int64_t> used = 0, limit = INT64_MAX, refused = 0;
  };

  explicit Arena(Account& account);
  Arena(Arena&&) noexcept;
  Arena& operator=(Arena&&) noexcept;
  ~Arena();

  void* allocate(int64_t bytes);  // aligned to 64; nullptr if there is not enough memory
  // Releases that block, and all that were allocated after it.
  void release(void* memory);
  // The position of the stack, and the release of all that was allocated since.
  void free();  // nothing may be allocated
  size_t position() const;
  void reset(size_t position);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The processors that this process may use.
unsigned usable_processors();

class ThreadPool {
 public:
  // `threads` includes the caller's; 0: usable_processors().
  explicit ThreadPool(unsigned threads = 0);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  // The pool of all sessions that do not ask for a number of threads: created at the first use, never destroyed.
  static ThreadPool& of_process();

  unsigned threads() const;

  // Runs task(arena, index) for each index below `count`, in any order, `threads()` at a time; the arena belongs to the
  // thread. If a task returns false no further tasks begin, and the result is the smallest index whose task did,
  // whatever the threads; else -1.
  int64_t run(int64_t count, FunctionRef<bool(Arena&, int64_t)> task);

  // Calls `use` with an arena that no other call uses.
  void with_arena(FunctionRef<void(Arena&)> use);

  // The memory of all arenas. A limit, which may be set between calls, refuses allocations beyond it, and keeps arenas
  // as small as their use; they keep what they have.
  int64_t arena_bytes() const;
  void free_arenas();  // those that no call uses; no call may begin or end meanwhile
  void limit_arenas(int64_t bytes);
  // What was refused since the limit was set: with so many bytes more, the call would have come further.
  int64_t refused_arena_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::runtime
