#include "runtime/native/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <vector>

namespace tenon::runtime {
namespace {

constexpr std::align_val_t kAlignment{64};

struct Freed {
  void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
};
// Whether this thread is inside a task, of any pool.
thread_local bool inside = false;
class Inside {
 public:
  Inside() : before_(inside) { inside = true; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { inside = before_; }

 private:
  bool before_;
};

// Checks of a value before a thread sleeps: some 50 us.
constexpr int kSpins = 1000;
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield");
#endif
}

struct Block {
  std::unique_ptr<std::byte, Freed> memory;
  size_t size = 0, begin = 0;  // begin: the sum of the sizes of all blocks before
};

}  // namespace

// A list of blocks; `top` is an offset into their concatenation. Each block is at least twice as large as the one
// before; under a limit it is as large as its first use.
struct Arena::State {
  explicit State(Account& of) : account(of) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { free(); }

  void free() {
    for (const Block& block : blocks) account.used -= static_cast<int64_t>(block.size);
    blocks.clear();
  }

  Account& account;
  std::vector<Block> blocks;
  size_t top = 0;
};

Arena::Arena(Account& account) : state_(std::make_unique<State>(account)) {}
Arena::Arena(Arena&&) noexcept = default;
Arena& Arena::operator=(Arena&&) noexcept = default;
Arena::~Arena() = default;

void* Arena::allocate(int64_t bytes) {
  constexpr size_t kFirst = 1 << 22;  // of address space: the pages that no kernel touches are no memory
  constexpr size_t kLeast = 1 << 12;  // under a limit
  if (bytes < 0 || bytes >= int64_t{1} << 48) return nullptr;
  const size_t size = (static_cast<size_t>(bytes) + 63) / 64 * 64 + 64;  // never two blocks at one address
  std::vector<Block>& blocks = state_->blocks;
  size_t& top = state_->top;
  for (Block& block : blocks) {
    const size_t offset = std::max(top, block.begin);
    if (offset + size > block.begin + block.size) continue;
    top = offset + size;
    return block.memory.get() + (offset - block.begin);
  }
  const bool limited = state_->account.is_limited();
  if (limited && top == 0) state_->free();
  const size_t end = blocks.empty() ? 0 : blocks.back().begin + blocks.back().size;
  const size_t length =
      limited ? std::max(kLeast, size) : std::max({kFirst, size, blocks.empty() ? 0 : 2 * blocks.back().size});
  if (!state_->account.take(static_cast<int64_t>(length))) return nullptr;
  auto* memory = static_cast<std::byte*>(::operator new(length, kAlignment, std::nothrow));
  if (!memory) {
    state_->account.used -= static_cast<int64_t>(length);
    return nullptr;
  }
  blocks.push_back({std::unique_ptr<std::byte, Freed>(memory), length, end});
  top = end + size;
  return memory;
}

void Arena::release(void* memory) {
  auto* const address = static_cast<std::byte*>(memory);
  for (const Block& block : state_->blocks) {
    if (address < block.memory.get() || address >= block.memory.get() + block.size) continue;
    state_->top = block.begin + static_cast<size_t>(address - block.memory.get());
    return;
  }
  assert(false && "memory of another arena is released");
}

void Arena::free() { state_->free(); }
size_t Arena::position() const { return state_->top; }
void Arena::reset(size_t position) { state_->top = position; }

unsigned usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
  return std::max(1u, std::thread::hardware_concurrency());  // more processors than the set holds
}

// A worker joins a call while its gate is open, and the caller closes the gate and waits for those inside: it never
// waits for a worker that sleeps. Both spin for a while before they sleep, as waking up takes longer than many kernels
// run.
struct ThreadPool::State {
  Arena::Account account;          // before the arenas, which refer to it
  std::atomic<bool> busy = false;  // a call has the threads
  std::vector<Arena> arenas;       // by thread, the caller's first

  std::atomic<bool> first_taken = false;
  Arena first{account};     // for the first of the callers outside of tasks
  std::mutex mutex;         // guards `idle`
  std::vector<Arena> idle;  // for the others

  std::atomic<uint32_t> calls = 0;  // or more: a change wakes the workers
  std::atomic<uint32_t> gate = 0;   // kOpen, and kInside for each worker inside
  std::atomic<bool> stop = false;
  static constexpr uint32_t kOpen = 1, kInside = 2;

  // Of the call whose gate is open.
  const FunctionRef<bool(Arena&, int64_t)>* task = nullptr;
  int64_t count = 0;
  std::atomic<int64_t> next = 0, failed = INT64_MAX;
  std::vector<std::jthread> threads;  // the last member, so that they end before the others are destroyed

  void work(Arena& arena, FunctionRef<bool(Arena&, int64_t)> run, int64_t end) {
    const Inside now;
    for (;;) {
      // Threads take indices in order, so all indices before a failing one are run to their end.
      const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= end || i > failed.load(std::memory_order_relaxed)) return;
      const size_t position = arena.position();
      const bool good = run(arena, i);
      arena.reset(position);
      if (good) continue;
      int64_t first = failed.load(std::memory_order_relaxed);
      while (i < first && !failed.compare_exchange_weak(first, i, std::memory_order_relaxed)) {
      }
    }
  }

  // Returns when the value is another one.
  static void await_change(const std::atomic<uint32_t>& value, uint32_t old) {
    for (int i = 0; i < kSpins; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      pause();
    }
    value.wait(old, std::memory_order_acquire);
  }

  bool join() {
    uint32_t now = gate.load(std::memory_order_acquire);
    while (now & kOpen) {
      if (gate.compare_exchange_weak(now, now + kInside, std::memory_order_acq_rel)) return true;
    }
    return false;
  }
  void leave() {
    if (gate.fetch_sub(kInside, std::memory_order_acq_rel) == kInside) gate.notify_one();  // closed, and the last one
  }
  void loop(unsigned index) {
    for (uint32_t seen = 0;;) {
      await_change(calls, seen);
      seen = calls.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_acquire)) return;
      if (!join()) continue;
      work(arenas[index], *task, count);
      leave();
    }
  }
  void wake() {
    calls.fetch_add(1, std::memory_order_release);
    calls.notify_all();
  }
  void close() {
    uint32_t inside = gate.fetch_sub(kOpen, std::memory_order_acq_rel) - kOpen;
    while (inside != 0) {
      await_change(gate, inside);
      inside = gate.load(std::memory_order_acquire);
    }
  }
};

ThreadPool::ThreadPool(unsigned threads) : state_(std::make_unique<State>()) {
  if (threads == 0) threads = usable_processors();
  state_->arenas.reserve(threads);
  for (unsigned i = 0; i < threads; ++i) state_->arenas.emplace_back(state_->account);
  for (unsigned i = 1; i < threads; ++i) state_->threads.emplace_back([this, i] { state_->loop(i); });
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true, std::memory_order_release);
  state_->wake();
}

ThreadPool& ThreadPool::of_process() {
  static auto* const pool = new ThreadPool;
  return *pool;
}

unsigned ThreadPool::threads() const { return static_cast<unsigned>(state_->arenas.size()); }

int64_t ThreadPool::run(int64_t count, FunctionRef<bool(Arena&, int64_t)> task) {
  State& state = *state_;
  if (inside || state.busy.exchange(true, std::memory_order_acquire)) {
    int64_t failed = -1;
    const auto run_all = [&](Arena& arena) {
      const Inside now;
      for (int64_t i = 0; i < count && failed < 0; ++i) {
        if (!task(arena, i)) failed = i;
        arena.reset(0);
      }
    };
    with_arena(std::ref(run_all));
    return failed;
  }
  state.next = 0;
  state.failed = INT64_MAX;
  const bool alone = state.threads.empty() || count <= 1;
  if (!alone) {
    state.task = &task;
    state.count = count;
    state.gate.store(State::kOpen, std::memory_order_release);
    state.wake();
  }
  state.work(state.arenas[0], task, count);
  if (!alone) state.close();
  const int64_t failed = state.failed == INT64_MAX ? -1 : state.failed.load();
  state.busy.store(false, std::memory_order_release);
  return failed;
}

void ThreadPool::with_arena(FunctionRef<void(Arena&)> use) {
  if (!state_->first_taken.exchange(true, std::memory_order_acquire)) {
    use(state_->first);
    state_->first.reset(0);
    state_->first_taken.store(false, std::memory_order_release);
    return;
  }
  std::optional<Arena> arena;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->idle.empty()) {
      arena = std::move(state_->idle.back());
      state_->idle.pop_back();
    }
  }
  if (!arena) arena.emplace(state_->account);
  use(*arena);
  arena->reset(0);
  const std::lock_guard lock(state_->mutex);
  state_->idle.push_back(std::move(*arena));
}

int64_t ThreadPool::arena_bytes() const { return state_->account.used; }

void ThreadPool::free_arenas() {
  const auto free = [](Arena& arena) {
    if (arena.position() == 0) arena.free();
  };
  std::ranges::for_each(state_->arenas, free);
  free(state_->first);
  const std::lock_guard lock(state_->mutex);
  std::ranges::for_each(state_->idle, free);
}

void ThreadPool::limit_arenas(int64_t bytes) {
  state_->account.limit = bytes;
  state_->account.refused = 0;
}

int64_t ThreadPool::refused_arena_bytes() const { return state_->account.refused; }

}  // namespace tenon::runtime
