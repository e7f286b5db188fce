// What calibration observes, from which each method takes its ranges.
#pragma once

#include <map>
#include <vector>

#include "compiler/quantize/calibrate.h"
#include "compiler/quantize/histogram.h"

namespace tenon::compiler {

struct Distributions {
  Ranges ranges;
  std::map<Symbol, std::vector<Histogram>> histograms;  // as `ranges`; empty where none are requested
};

Status check_options(const CalibrationOptions& options);
Expected<Distributions> observe(const Context& context, const Module& module, Symbol entry, const Samples& samples,
                                bool with_histograms);
// The ranges by a method other than kMeasured; those of kMinMax require no histograms.
Ranges ranges_by(const Distributions& found, const CalibrationOptions& options);

}  // namespace tenon::compiler
