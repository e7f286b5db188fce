#include "runtime/vm/buffer_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "runtime/vm/heap.h"

namespace tenon::runtime {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kSmallest = 64, kSteps = 4;           // classes of each power of two
constexpr size_t kClasses = kSteps * 64;               // more than any size needs
constexpr uint64_t kRunsKept = 64, kRunsBetween = 16;  // of idle memory, and between two looks at it

// The class of a capacity: a multiple of kSmallest at first, then each power of two has kSteps classes.
size_t class_of(size_t capacity) {
  if (capacity <= kSteps * kSmallest) return capacity / kSmallest;
  const auto power = static_cast<size_t>(std::bit_width(capacity - 1)) - 1;
  return power * kSteps + (capacity - 1) / ((size_t{1} << power) / kSteps) % kSteps;
}

// For a few instructions at a time: an uncontended mutex takes three times as long.
class SpinLock {
 public:
  void lock() {
    for (int i = 0; taken_.exchange(true, std::memory_order_acquire); ++i) {
      if (i >= kSpins) std::this_thread::yield();
    }
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr int kSpins = 100;
  std::atomic<bool> taken_ = false;
};

}  // namespace

struct BufferPool::State {
  // The header in front of a buffer. The control block of the buffer's shared pointer lies in it.
  struct Block {
    static constexpr size_t kBytes = 128, kControlBytes = 64;
    alignas(16) std::array<std::byte, kControlBytes> control;
    std::shared_ptr<State> owner;  // while the buffer is used
    Block* next = nullptr;         // while it is idle
    size_t size_class = 0, capacity = 0;
    uint64_t last_use = 0;  // a run

    std::byte* buffer() { return reinterpret_cast<std::byte*>(this) + kBytes; }
  };
  static_assert(sizeof(Block) <= Block::kBytes);

  // Allocates the control block. The pointer's deleter is called before the control block is freed, so the buffer comes
  // back with the latter.
  template <class T>
  struct ControlAllocator {
    using value_type = T;
    Block* block = nullptr;

    explicit ControlAllocator(Block* of) : block(of) {}
    template <class U>
    ControlAllocator(const ControlAllocator<U>& other) : block(other.block) {}  // NOLINT: required of allocators
    T* allocate([[maybe_unused]] size_t count) {
      static_assert(sizeof(T) <= Block::kControlBytes && alignof(T) <= 16);
      assert(count == 1);
      return reinterpret_cast<T*>(block->control.data());
    }
    void deallocate(T*, size_t) noexcept { give_back(block); }
    bool operator==(const ControlAllocator&) const = default;
  };

  SpinLock mutex;
  std::array<Block*, kClasses> idle{};
  std::array<uint64_t, kClasses / 64> has_idle{};  // a bit for each class
  uint64_t runs = 0;
  size_t limit = SIZE_MAX;
  size_t held = 0;  // bytes from the system

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { free_idle(UINT64_MAX); }

  static void give_back(Block* block) noexcept {
    const std::shared_ptr<State> owner = std::move(block->owner);  // which may die here
    const std::lock_guard lock(owner->mutex);
    block->last_use = owner->runs;
    owner->put(block);
  }
  void put(Block* block) {
    const size_t index = block->size_class;
    block->next = std::exchange(idle[index], block);
    has_idle[index / 64] |= uint64_t{1} << index % 64;
  }
  // An idle block of the smallest class from `first` on that has one; nullptr if none has.
  Block* take_idle(size_t first) {
    for (size_t word = first / 64; word < has_idle.size(); ++word) {
      uint64_t& bits = has_idle[word];
      const uint64_t candidates = word == first / 64 ? bits & (UINT64_MAX << first % 64) : bits;
      if (candidates == 0) continue;
      const size_t index = word * 64 + static_cast<size_t>(std::countr_zero(candidates));
      Block* block = std::exchange(idle[index], idle[index]->next);
      if (!idle[index]) bits &= ~(uint64_t{1} << index % 64);
      return block;
    }
    return nullptr;
  }
  bool is_limited() const { return limit != SIZE_MAX; }
  // An idle block for a buffer of the class, whose user has room for it; nullptr if there is none, and then there is
  // room for a new one. `mutex` is held.
  Block* take(size_t index, size_t bytes) {
    if (!is_limited()) return take_idle(index);
    if (idle[index]) return take_idle(index);
    make_room(bytes);
    return nullptr;
  }
  // Frees idle blocks, the largest first, until so many bytes are within the limit.
  void make_room(size_t bytes) {
    for (size_t index = kClasses; held + bytes > limit && index-- > 0;) {
      while (idle[index] && held + bytes > limit) free(take_idle(index));
    }
  }
  void free(Block* block) {
    held -= Block::kBytes + block->capacity;
    block->~Block();
    ::operator delete(static_cast<void*>(block), kAlignment);
  }
  // Frees what no run has used since run `before`; `mutex` is held.
  void free_idle(uint64_t before) {
    std::array<Block*, kClasses> blocks = std::exchange(idle, {});
    has_idle = {};
    for (Block* next : blocks) {
      while (Block* block = next) {
        next = block->next;
        if (block->last_use >= before) {
          put(block);
          continue;
        }
        free(block);
      }
    }
  }
};

BufferPool::BufferPool() : state_(std::make_shared<State>()) {}

void BufferPool::limit(size_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->limit = bytes;
  state_->make_room(0);
}

size_t BufferPool::used() const {
  const std::lock_guard lock(state_->mutex);
  size_t used = state_->held;
  for (const State::Block* block : state_->idle) {
    for (; block; block = block->next) used -= State::Block::kBytes + block->capacity;
  }
  return used;
}

size_t BufferPool::held() const {
  const std::lock_guard lock(state_->mutex);
  return state_->held;
}

size_t BufferPool::rounded(size_t bytes) {
  if (bytes <= kSteps * kSmallest) return std::max<size_t>((bytes + kSmallest - 1) / kSmallest, 1) * kSmallest;
  const size_t step = std::bit_floor(bytes - 1) / kSteps;
  return (bytes + step - 1) / step * step;
}

size_t BufferPool::footprint(size_t bytes) { return State::Block::kBytes + rounded(bytes); }

Storage BufferPool::take(size_t bytes) {
  if (!kPoolsMemory) return Storage::allocate(bytes);
  using Block = State::Block;
  const size_t capacity = rounded(bytes);
  Block* block = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    block = state_->take(class_of(capacity), footprint(bytes));
    if (!block) state_->held += footprint(bytes);
  }
  if (!block) {
    const auto allocate = [&] { return ::operator new(Block::kBytes + capacity, kAlignment, std::nothrow); };
    void* memory = allocate();
    if (!memory) {
      const std::lock_guard lock(state_->mutex);
      state_->free_idle(UINT64_MAX);
      memory = allocate();
    }
    if (!memory) {
      const std::lock_guard lock(state_->mutex);
      state_->held -= footprint(bytes);
      return {};
    }
    block = new (memory) Block;
    block->size_class = class_of(capacity);
    block->capacity = capacity;
  }
  block->owner = state_;
  return {std::shared_ptr<std::byte[]>(
              block->buffer(), [](std::byte*) {}, State::ControlAllocator<std::byte>(block)),
          block->capacity};
}

void BufferPool::age() {
  const std::lock_guard lock(state_->mutex);
  if (++state_->runs % kRunsBetween == 0 && state_->runs > kRunsKept) state_->free_idle(state_->runs - kRunsKept);
}

}  // namespace tenon::runtime
