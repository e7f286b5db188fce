// What calibration observes, from which each method takes its ranges.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "compiler/quantize/calibrate.h"
#include "compiler/quantize/histogram.h"

namespace tenon::compiler {

// Of the values of each channel, axis 1; a value without that axis is one channel.
struct ChannelStatistics {
  std::vector<float> lo, hi;
  std::vector<double> sums;
  int64_t count = 0;  // of the values of one channel

  void add(const runtime::Tensor& tensor);
  bool is_finite() const {
    return std::ranges::all_of(sums, [](double sum) { return std::isfinite(sum); });
  }
  double mean(size_t channel) const { return count > 0 ? sums[channel] / static_cast<double>(count) : 0; }
};

struct Distributions {
  Ranges ranges;
  std::map<Symbol, std::vector<Histogram>> histograms;  // as `ranges`; empty where none are requested
  std::map<Symbol, std::vector<ChannelStatistics>> channels;
};

Status check_options(const CalibrationOptions& options);
// Of the parameters, and of the values that layers require (find_layers).
Expected<Distributions> observe(Context& context, const Module& module, Symbol entry, const Samples& samples,
                                const CalibrationOptions& options);
// The ranges by a method other than kMeasured; those of kMinMax require no histograms.
Ranges ranges_by(const Distributions& found, const CalibrationOptions& options);

}  // namespace tenon::compiler
