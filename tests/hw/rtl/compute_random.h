// Random commands and contents for module `compute`, inside given windows of the scratchpads. Small windows and stride
// 0 are frequent, so that equal indices occur at every distance.
#pragma once

#include <initializer_list>
#include <random>

#include "tests/hw/rtl/compute_bench.h"
#include "tests/hw/rtl/compute_model.h"

namespace tenon::rtl_test {

struct Window {
  uint32_t begin = 0, size = 1;
};
// The windows of one scenario.
struct Windows {
  Window uop, wgt, inp, acc, out, par, res;
};

class Random {
 public:
  Random(const spec::Config& config, uint64_t seed) : config_(config), random_(seed) {}

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  bool chance(int percent) { return static_cast<int>(below(100)) < percent; }
  Window whole(spec::Memory memory) const;
  Windows whole() const;
  // A random, mostly small part of a window.
  Window part(Window window);

  // Loads for every unit of the windows; `kinds` are the scratchpads. Values of acc are small, large and special ones.
  std::vector<LoadItem> fill(const Windows& windows, std::initializer_list<spec::Memory> kinds);
  // Micro-ops for windows of dst, src and wgt that leave room for offsets below `headroom` of each.
  GemmCommand own_gemm(const Windows& windows, uint32_t index);
  GemmCommand native_gemm(const Windows& windows, uint32_t index);
  RqCommand rq(const Windows& windows, uint32_t index);
  // Base commands come with the micro-ops that they need, as loads.
  GemmCommand base_gemm(const Windows& windows, uint32_t index, std::vector<LoadItem>& uops);
  AluCommand alu(const Windows& windows, uint32_t index, std::vector<LoadItem>& uops);

 private:
  struct Level {
    uint32_t extent;
    uint32_t* stride;
  };
  // Draws strides that keep every index inside the window; returns the remaining range of the base.
  uint32_t spread(Window window, std::initializer_list<Level> levels);
  uint32_t extent(uint32_t max);
  std::vector<LoadItem> micro_ops(uint32_t begin, uint32_t end, Window dst, Window src, Window wgt);

  const spec::Config& config_;
  std::mt19937_64 random_;
};

}  // namespace tenon::rtl_test
