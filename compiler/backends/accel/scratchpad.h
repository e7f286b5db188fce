// Ring allocation of a scratchpad: address ranges are reused oldest first, across tiles and layers alike, so that the
// loads of the next tile or layer get a range whose readers have finished. Data that is still resident is not loaded
// again.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <deque>

namespace tenon::compiler::accel {

class ScratchpadRing {
 public:
  using Key = std::array<int64_t, 8>;  // identifies the contents of a range
  struct Allocation {
    int64_t base = 0;
    bool resident = false;  // the contents are loaded already
  };

  explicit ScratchpadRing(int64_t depth) : ScratchpadRing(0, depth) {}
  ScratchpadRing(int64_t begin, int64_t end) : begin_(begin), end_(end), next_(begin) {}

  // A range whose contents are not looked up later.
  int64_t take(int64_t size) {
    assert(size >= 1 && size <= end_ - begin_);
    if (next_ + size > end_) next_ = begin_;
    const int64_t base = next_;
    std::erase_if(held_, [&](const Held& h) { return h.base < base + size && base < h.base + h.size; });
    next_ += size;
    return base;
  }

  // The range that holds `key`, allocated if there is none. The caller fills it unless it is resident.
  Allocation find_or_take(const Key& key, int64_t size) {
    for (const Held& h : held_) {
      if (h.key == key && h.size == size) return {h.base, true};
    }
    const int64_t base = take(size);
    held_.push_back({key, base, size});
    return {base, false};
  }

 private:
  struct Held {
    Key key;
    int64_t base, size;
  };
  int64_t begin_, end_, next_;
  std::deque<Held> held_;
};

}  // namespace tenon::compiler::accel
