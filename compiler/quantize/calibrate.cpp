#include "compiler/quantize/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/dependencies.h"
#include "compiler/ir/interpreter.h"
#include "compiler/quantize/distributions.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// Calls `visit` with every f32 tensor of every function that runs, by the function's name and the variable.
template <class F>
Status run_samples(const Context& context, const Module& module, Symbol entry, const Samples& samples, F&& visit) {
  std::map<const Function*, Symbol> names;
  for_each_function(module, [&](Symbol name, const Function& function) { names.emplace(&function, name); });
  const auto observe = [&](const Function& running, VarId var, const RunValue& value) {
    if (value.tensor() && value.tensor().dtype() == runtime::DType::kF32)
      visit(names.at(&running), var, value.tensor().data<float>());
  };
  for (const auto& sample : samples) {
    TENON_TRY(interpret(context, module, entry, std::span<const runtime::Tensor>(sample), observe));
  }
  return {};
}

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

Expected<Distributions> observe(const Context& context, const Module& module, Symbol entry, const Samples& samples,
                                bool with_histograms) {
  if (!module.function(entry)) {
    return error(fmt::format("the module has no function @{}", context.name(entry)), {}, {}, Fault::kInternal);
  }
  if (samples.empty())
    return error("calibration requires at least one sample", {}, "use data like the model's later inputs");
  Distributions found;
  for (const Symbol name : reachable_globals(module, entry)) {
    if (const Function* function = module.function(name)) found.ranges[name].resize(function->vars.size());
  }
  std::string not_finite;
  const auto widen = [&](Symbol name, VarId var, std::span<const float> values) {
    Range& range = found.ranges[name][index(var)];
    for (const float value : values) {
      if (!std::isfinite(value) && not_finite.empty()) {
        not_finite = fmt::format("a value of %{} is {}", context.name(module.function(name)->info(var).name), value);
      }
      range.lo = range.observed ? std::min(range.lo, value) : value;
      range.hi = range.observed ? std::max(range.hi, value) : value;
      range.observed = true;
    }
  };
  TENON_TRY(run_samples(context, module, entry, samples, widen));
  if (!not_finite.empty()) return error(not_finite + " during calibration", {}, "check the data and its normalization");
  if (!with_histograms) return found;
  for (const auto& [name, ranges] : found.ranges) found.histograms[name].resize(ranges.size());
  const auto count = [&](Symbol name, VarId var, std::span<const float> values) {
    Histogram& histogram = found.histograms[name][index(var)];
    for (const float value : values) histogram.add(value, found.ranges[name][index(var)]);
  };
  TENON_TRY(run_samples(context, module, entry, samples, count));
  return found;
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

Expected<Ranges> calibrate(const Context& context, const Module& module, Symbol entry, const Samples& samples,
                           const CalibrationOptions& options) {
  if (options.method == Calibration::kMeasured)
    return error("the method is not chosen yet", {}, "measure it with calibrate_by_error()", Fault::kInternal);
  TENON_TRY(check_options(options));
  TENON_TRY_ASSIGN(found, observe(context, module, entry, samples, options.method != Calibration::kMinMax));
  return ranges_by(*found, options);
}

}  // namespace tenon::compiler
