// The token matrix: 8-bit counters (producer, consumer) over the engines.
#pragma once

#include <array>
#include <cstdint>

#include "hw/spec/isa.h"

namespace tenon::sim {

class Tokens {
 public:
  uint8_t& at(size_t producer, size_t consumer) { return counters_[producer * spec::kEngines + consumer]; }
  uint8_t at(size_t producer, size_t consumer) const { return counters_[producer * spec::kEngines + consumer]; }
  void clear() { counters_ = {}; }
  const std::array<uint8_t, spec::kEngines * spec::kEngines>& counters() const { return counters_; }

  bool can_take(size_t consumer, unsigned wait) const {
    for (size_t p = 0; p < spec::kEngines; ++p)
      if (((wait >> p) & 1) != 0 && at(p, consumer) == 0) return false;
    return true;
  }
  bool can_give(size_t producer, unsigned signal) const {
    for (size_t c = 0; c < spec::kEngines; ++c)
      if (((signal >> c) & 1) != 0 && at(producer, c) == spec::kMaxTokens) return false;
    return true;
  }
  void take(size_t consumer, unsigned wait) {
    for (size_t p = 0; p < spec::kEngines; ++p)
      if (((wait >> p) & 1) != 0) --at(p, consumer);
  }
  void give(size_t producer, unsigned signal) {
    for (size_t c = 0; c < spec::kEngines; ++c)
      if (((signal >> c) & 1) != 0) ++at(producer, c);
  }

 private:
  std::array<uint8_t, spec::kEngines * spec::kEngines> counters_{};
};

}  // namespace tenon::sim
