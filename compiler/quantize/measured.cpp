#include "compiler/quantize/measured.h"

#include <algorithm>
#include <cmath>

#include "compiler/quantize/distributions.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr size_t kMeasuredSamples = 8;  // more of them seldom change the order of the methods

using Results = std::vector<std::vector<runtime::Tensor>>;  // of each sample

Expected<Results> results_of(const Runner& runner, const Module& module, Symbol entry, const Samples& samples) {
  Results results;
  TENON_TRY_ASSIGN(run, runner(module, entry));
  for (size_t i = 0; i < std::min(samples.size(), kMeasuredSamples); ++i) {
    TENON_TRY_ASSIGN(found, (*run)(samples[i]));
    results.push_back(std::move(*found));
  }
  return results;
}

// The float results' squared differences, relative to the squares of `expected`.
double relative_error(const Results& found, const Results& expected) {
  double differences = 0, squares = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    for (size_t k = 0; k < found[i].size(); ++k) {
      if (expected[i][k].dtype() != runtime::DType::kF32) continue;
      const auto a = found[i][k].data<float>(), b = expected[i][k].data<float>();
      for (size_t e = 0; e < b.size(); ++e) {
        const double difference = double{a[e]} - b[e];
        differences += difference * difference;
        squares += double{b[e]} * b[e];
      }
    }
  }
  return squares > 0 ? differences / squares : differences;
}

}  // namespace

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
  TENON_TRY_ASSIGN(expected, results_of(runner, module, entry, samples));
  MeasuredRanges best;
  double least = HUGE_VAL;
  for (const Calibration method :
       {Calibration::kMinMax, Calibration::kPercentile, Calibration::kDivergence, Calibration::kSquaredError}) {
    CalibrationOptions options = calibration;
    options.method = method;
    Ranges ranges = ranges_by(*observed, options);
    TENON_TRY_ASSIGN(quantized, quantize(context, module, entry, ranges, quantization));
    TENON_TRY_ASSIGN(found, results_of(runner, *quantized, entry, samples));
    const double found_error = relative_error(*found, *expected);
    best.errors.emplace_back(method, found_error);
    if (!(found_error < least) && !best.ranges.empty()) continue;
    least = found_error, best.ranges = std::move(ranges), best.method = method;
  }
  return best;
}

}  // namespace tenon::compiler
