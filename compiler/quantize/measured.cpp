#include "compiler/quantize/measured.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "compiler/quantize/distributions.h"
#include "compiler/quantize/equalize.h"
#include "compiler/quantize/results.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

ChannelMeans means_of(const Distributions& observed) {
  ChannelMeans means;
  for (const auto& [name, values] : observed.channels) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].count == 0) continue;
      std::vector<double>& of_value = means[{name, static_cast<VarId>(i)}];
      for (size_t c = 0; c < values[i].sums.size(); ++c) of_value.push_back(values[i].mean(c));
    }
  }
  return means;
}

// What was observed of the function, and of its equalized form.
class Ways {
 public:
  Ways(Context& context, const Module& module, Symbol entry, const Samples& samples,
       const CalibrationOptions& calibration, const QuantizeOptions& quantization)
      : context_(context),
        module_(module),
        entry_(entry),
        samples_(samples),
        calibration_(calibration),
        quantization_(quantization),
        runner_(calibration.runner ? calibration.runner : interpreter(context)) {}

  Expected<MeasuredRanges> make(const MeasuredWay& way) {
    MeasuredRanges made;
    TENON_TRY_ASSIGN(observed, observations(way.equalized));
    CalibrationOptions options = calibration_;
    options.method = way.method;
    made.ranges = ranges_by(**observed, options);
    made.way = way;
    if (way.equalized) made.equalized = clone(*equalized_);
    if (way.corrected) made.means = means_of(**observed);
    return made;
  }

  // With its error; takes it in `best` if that is greater, or has nothing yet.
  Status measure(const MeasuredWay& way, MeasuredRanges& best) {
    TENON_TRY_ASSIGN(made, make(way));
    if (expected_.empty()) {
      TENON_TRY_ASSIGN(expected, run_samples(runner_, module_, entry_, samples_, kMeasuredSamples));
      expected_ = std::move(*expected);
    }
    QuantizeOptions options = quantization_;
    options.means = made->means;
    const Module& source = made->equalized ? *made->equalized : module_;
    TENON_TRY_ASSIGN(quantized, quantize(context_, source, entry_, made->ranges, options));
    TENON_TRY_ASSIGN(found, run_samples(runner_, *quantized, entry_, samples_, kMeasuredSamples));
    made->way.error = relative_error(*found, expected_);
    made->tried = std::move(best.tried);
    made->tried.push_back(made->way);
    if (best.ranges.empty() || made->way.error < best.way.error) best = std::move(*made);
    else best.tried = std::move(made->tried);
    return {};
  }

 private:
  Expected<const Distributions*> observations(bool equalized) {
    if (!observed_) {
      TENON_TRY_ASSIGN(found, observe(context_, module_, entry_, samples_, calibration_));
      observed_ = std::move(*found);
    }
    if (!equalized) return &*observed_;
    if (!equalized_) {
      equalized_ = equalize(module_, *observed_).module;
      TENON_TRY_ASSIGN(found, observe(context_, *equalized_, entry_, samples_, calibration_));
      observed_equalized_ = std::move(*found);
    }
    return &*observed_equalized_;
  }

  Context& context_;
  const Module& module_;
  Symbol entry_;
  const Samples& samples_;
  const CalibrationOptions& calibration_;
  const QuantizeOptions& quantization_;
  Runner runner_;
  std::optional<Distributions> observed_, observed_equalized_;
  std::optional<Module> equalized_;
  Results expected_;
};

}  // namespace

std::string describe(const MeasuredWay& way) {
  return fmt::format("{}{}{}", name(way.method), way.corrected ? ", biases corrected" : "",
                     way.equalized ? ", layers equalized" : "");
}

std::string report(const MeasuredRanges& found) {
  if (found.tried.empty()) return {};
  std::string text =
      fmt::format("calibration: {}; the results differ from the float model's by\n", describe(found.way));
  for (const MeasuredWay& way : found.tried) text += fmt::format("  {:.4f}  {}\n", std::sqrt(way.error), describe(way));
  return text;
}

Expected<MeasuredRanges> calibrate_by_error(Context& context, const Module& module, Symbol entry,
                                            const Samples& samples, const CalibrationOptions& calibration,
                                            const QuantizeOptions& quantization) {
  TENON_TRY(check_options(calibration));
  Ways ways(context, module, entry, samples, calibration, quantization);
  MeasuredWay way{.method = calibration.method,
                  .corrected = calibration.correct_biases,
                  .equalized = calibration.equalize,
                  .error = 0};
  if (calibration.method != Calibration::kMeasured) return ways.make(way);
  MeasuredRanges best;
  for (const Calibration method :
       {Calibration::kMinMax, Calibration::kPercentile, Calibration::kDivergence, Calibration::kSquaredError}) {
    way.method = method;
    TENON_TRY(ways.measure(way, best));
  }
  for (bool MeasuredWay::*const step : {&MeasuredWay::corrected, &MeasuredWay::equalized}) {
    way = best.way;
    if (std::exchange(way.*step, true)) continue;
    TENON_TRY(ways.measure(way, best));
  }
  return best;
}

}  // namespace tenon::compiler
