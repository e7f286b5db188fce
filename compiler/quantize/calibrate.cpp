#include "compiler/quantize/calibrate.h"

#include <fmt/format.h>

#include "compiler/quantize/distributions.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

Range chosen(const Histogram& histogram, const Range& range, const CalibrationOptions& options) {
  switch (options.method) {
    case Calibration::kMinMax: return range;
    case Calibration::kPercentile: return histogram.cut(range, (1 - options.percentile) / 2);
    case Calibration::kDivergence: return histogram.least_divergence(range);
    case Calibration::kSquaredError:
    case Calibration::kMeasured: return histogram.least_error(range);
  }
  return range;
}

}  // namespace

std::string_view name(Calibration method) {
  switch (method) {
    case Calibration::kMinMax: return "minmax";
    case Calibration::kPercentile: return "percentile";
    case Calibration::kDivergence: return "kl";
    case Calibration::kSquaredError: return "mse";
    case Calibration::kMeasured: return "measured";
  }
  return "";
}

Expected<Calibration> parse_calibration(std::string_view text) {
  if (text == "minmax") return Calibration::kMinMax;
  if (text == "percentile") return Calibration::kPercentile;
  if (text == "kl") return Calibration::kDivergence;
  if (text == "mse") return Calibration::kSquaredError;
  if (text == "measured") return Calibration::kMeasured;
  return error(fmt::format("unknown calibration \"{}\"", text), {},
               "the methods are minmax, percentile, kl, mse and measured", Fault::kUsage);
}

Ranges ranges_by(const Distributions& found, const CalibrationOptions& options) {
  Ranges all = found.ranges;
  for (const auto& [name, histograms] : found.histograms) {
    std::vector<Range>& ranges = all[name];
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (ranges[i].observed) ranges[i] = chosen(histograms[i], ranges[i], options);
    }
  }
  return all;
}

Status check_options(const CalibrationOptions& options) {
  if (options.percentile > 0.5 && options.percentile <= 1) return {};
  return error(fmt::format("percentile is {}, must be above 0.5 and at most 1", options.percentile), {}, {},
               Fault::kUsage);
}

Expected<Ranges> calibrate(Context& context, const Module& module, Symbol entry, const Samples& samples,
                           const CalibrationOptions& options) {
  if (options.method == Calibration::kMeasured)
    return error("the method is not chosen yet", {}, "measure it with calibrate_by_error()", Fault::kInternal);
  TENON_TRY(check_options(options));
  TENON_TRY_ASSIGN(found, observe(context, module, entry, samples, options));
  return ranges_by(*found, options);
}

}  // namespace tenon::compiler
