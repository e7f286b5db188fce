#include "compiler/quantize/measured.h"

#include <cmath>

#include "compiler/quantize/distributions.h"
#include "compiler/quantize/results.h"
#include "support/try.h"

namespace tenon::compiler {
Expected<MeasuredRanges> calibrate_by_error(Context& context, const Module& module, Symbol entry,
                                            const Samples& samples, const CalibrationOptions& calibration,
                                            const QuantizeOptions& quantization) {
  if (calibration.method != Calibration::kMeasured) {
    TENON_TRY_ASSIGN(ranges, calibrate(context, module, entry, samples, calibration));
    return MeasuredRanges{std::move(*ranges), calibration.method, {}};
  }
  TENON_TRY(check_options(calibration));
  TENON_TRY_ASSIGN(observed, observe(context, module, entry, samples, calibration));
  const Runner runner = calibration.runner ? calibration.runner : interpreter(context);
  TENON_TRY_ASSIGN(expected, run_samples(runner, module, entry, samples, kMeasuredSamples));
  MeasuredRanges best;
  double least = HUGE_VAL;
  for (const Calibration method :
       {Calibration::kMinMax, Calibration::kPercentile, Calibration::kDivergence, Calibration::kSquaredError}) {
    CalibrationOptions options = calibration;
    options.method = method;
    Ranges ranges = ranges_by(*observed, options);
    TENON_TRY_ASSIGN(quantized, quantize(context, module, entry, ranges, quantization));
    TENON_TRY_ASSIGN(found, run_samples(runner, *quantized, entry, samples, kMeasuredSamples));
    const double found_error = relative_error(*found, *expected);
    best.errors.emplace_back(method, found_error);
    if (!(found_error < least) && !best.ranges.empty()) continue;
    least = found_error, best.ranges = std::move(ranges), best.method = method;
  }
  return best;
}

}  // namespace tenon::compiler
