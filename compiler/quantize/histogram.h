// The distribution of a value's elements, from which calibration takes the range that int8 represents.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/quantize/calibrate.h"

namespace tenon::compiler {

class Histogram {
 public:
  static constexpr int kBins = 4096;  // of equal width over the observed range

  void add(float value, const Range& range);

  // The range without the outermost fraction `tail` of the values on each side.
  Range cut(const Range& range, double tail) const;
  // Among cuts, the range whose int8 values have the least mean squared error.
  Range least_error(const Range& range) const;
  // Among cuts, the range whose int8 values have the distribution that is closest to that of the clipped values by
  // Kullback and Leibler's divergence, as TensorRT chooses ranges (Migacz 2017).
  Range least_divergence(const Range& range) const;

 private:
  static size_t bin_of(float value, const Range& range);
  double squared_error(const Range& observed, const Range& cut) const;
  double divergence(const Range& observed, const Range& cut) const;
  float center(const Range& range, size_t bin) const {
    return range.lo + (range.hi - range.lo) * (static_cast<float>(bin) + 0.5f) / kBins;
  }

  std::vector<uint64_t> bins_ = std::vector<uint64_t>(kBins);
  uint64_t total_ = 0;
};

}  // namespace tenon::compiler
