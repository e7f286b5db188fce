// Sets of scratchpad indices for the footprints of loop nests: the set of base + sum(i_k * factor_k) is built by one
// shift-and-or per doubling of each loop, not by iterating over the loops.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::sim {

class Bitmap {
 public:
  Bitmap() = default;
  explicit Bitmap(size_t bits) : bits_(bits), words_((bits + 63) / 64) {}

  size_t size() const { return bits_; }
  std::vector<uint64_t>& words() { return words_; }
  const std::vector<uint64_t>& words() const { return words_; }
  bool test(size_t i) const { return (words_[i / 64] >> (i % 64)) & 1; }
  void set(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  void reset(size_t i) { words_[i / 64] &= ~(uint64_t{1} << (i % 64)); }
  void clear() { words_.assign(words_.size(), 0); }
  bool any() const {
    for (uint64_t w : words_)
      if (w != 0) return true;
    return false;
  }
  void set_range(size_t begin, size_t end) {
    for (size_t i = begin; i < end;) {
      if (i % 64 == 0 && end - i >= 64) {
        words_[i / 64] = ~uint64_t{0};
        i += 64;
      } else {
        set(i++);
      }
    }
  }
  // Whether every index in [begin, end) is a member.
  bool contains_range(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i)
      if (!test(i)) return false;
    return true;
  }
  Bitmap& operator|=(const Bitmap& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  // Whether every member of `other` is a member.
  bool contains(const Bitmap& other) const {
    for (size_t i = 0; i < words_.size(); ++i)
      if ((other.words_[i] & ~words_[i]) != 0) return false;
    return true;
  }

  // Becomes the union of this set shifted by 0, step, ..., (count - 1) * step; all results must be below size().
  void spread(int64_t count, int64_t step) {
    assert(count >= 1);
    if (step == 0) return;
    for (int64_t copies = 1; copies < count;) {
      const int64_t added = copies < count - copies ? copies : count - copies;
      or_shifted(static_cast<size_t>(added * step));
      copies += added;
    }
  }

  template <class F>  // f(index), ascending
  void for_each(F&& f) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t remaining = words_[w]; remaining != 0; remaining &= remaining - 1) {
        f(w * 64 + static_cast<size_t>(std::countr_zero(remaining)));
      }
    }
  }

 private:
  void or_shifted(size_t by) {
    const size_t words = by / 64, bits = by % 64;
    for (size_t i = words_.size(); i-- > words;) {  // from the top, so that each source word is still unchanged
      uint64_t v = words_[i - words] << bits;
      if (bits != 0 && i > words) v |= words_[i - words - 1] >> (64 - bits);
      words_[i] |= v;
    }
  }
  size_t bits_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace tenon::sim
