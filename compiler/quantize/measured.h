// Calibration by the method that measures best, with corrected biases and equalized layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/quantize/calibrate.h"
#include "compiler/quantize/quantize.h"

namespace tenon::compiler {

// A way to quantize a function, and the squared differences of the int8 function's float results from the float
// function's, relative to the squares of these.
struct MeasuredWay {
  Calibration method = Calibration::kMinMax;
  bool corrected = false, equalized = false;
  double error = 0;
};

struct MeasuredRanges {
  Ranges ranges;
  ChannelMeans means;               // for QuantizeOptions; empty where biases are not corrected
  std::optional<Module> equalized;  // the function that the ranges belong to, where it is not the one that was given
  MeasuredWay way;                  // `error` is measured for kMeasured only
  std::vector<MeasuredWay> tried;   // empty where the options name a method
};
std::string describe(const MeasuredWay& way);     // "kl, biases corrected"
std::string report(const MeasuredRanges& found);  // for people: a line; empty where nothing was tried

// As calibrate(). With kMeasured, quantizes the function by each method and takes the one with the least error on the
// first samples; then corrects biases, then equalizes layers, and keeps what lessens the error. Of equal errors, the
// first of kMinMax, kPercentile, kDivergence and kSquaredError.
Expected<MeasuredRanges> calibrate_by_error(Context& context, const Module& module, Symbol entry,
                                            const Samples& samples, const CalibrationOptions& calibration = {},
                                            const QuantizeOptions& quantization = {});

}  // namespace tenon::compiler
