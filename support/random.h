// A random number generator that returns the same values on every platform, so that a seed identifies a generated
// program for good. (The distributions of the standard library differ between its implementations.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace tenon {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {  // splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int64_t between(int64_t low, int64_t high) {  // both included
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  size_t below(size_t count) { return static_cast<size_t>(next() % count); }
  bool chance(int percent) { return between(0, 99) < percent; }
  template <class T>
  T of(std::initializer_list<T> values) {
    return values.begin()[between(0, static_cast<int64_t>(values.size()) - 1)];
  }
  template <class T>
  const T& one_of(const std::vector<T>& values) {
    return values[below(values.size())];
  }
  // A size in 1 .. max; small sizes and both ends of the range are more frequent.
  int64_t size(int64_t max) {
    if (max <= 1 || chance(15)) return 1;
    if (chance(10)) return max;
    return chance(60) ? between(1, max < 8 ? max : 8) : between(1, max);
  }
  // The value of a field; both ends of the range and zero are more frequent.
  int64_t value(int64_t low, int64_t high) {
    if (chance(10)) return low;
    if (chance(10)) return high;
    if (chance(10) && low <= 0 && high >= 0) return 0;
    return between(low, high);
  }

 private:
  uint64_t state_;
};

}  // namespace tenon
