// Calibration by the method that measures best.
#pragma once

#include <utility>
#include <vector>

#include "compiler/quantize/calibrate.h"
#include "compiler/quantize/quantize.h"

namespace tenon::compiler {

struct MeasuredRanges {
  Ranges ranges;
  Calibration method = Calibration::kMinMax;
  // Of each method that was tried: the squared differences of the int8 function's float results from the float
  // function's, relative to the squares of these. Empty where the options name a method.
  std::vector<std::pair<Calibration, double>> errors;
};

// As calibrate(); with kMeasured, quantizes the function by each method and takes the one with the least error on the
// first samples. Of equal errors, the first of kMinMax, kPercentile, kDivergence and kSquaredError.
Expected<MeasuredRanges> calibrate_by_error(Context& context, const Module& module, Symbol entry,
                                            const Samples& samples, const CalibrationOptions& calibration = {},
                                            const QuantizeOptions& quantization = {});

}  // namespace tenon::compiler
