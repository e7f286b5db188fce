#include "compiler/quantize/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/interpreter.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr int kBins = 4096;

struct Histogram {
  std::vector<uint64_t> bins = std::vector<uint64_t>(kBins);
  uint64_t total = 0;

  void add(float value, const Range& range) {
    const float width = range.hi - range.lo;
    const auto bin = width > 0 ? static_cast<int>((value - range.lo) / width * kBins) : 0;
    ++bins[static_cast<size_t>(std::clamp(bin, 0, kBins - 1))];
    ++total;
  }

  // The range without the outermost fraction `tail` of the values on each side.
  Range cut(const Range& range, double tail) const {
    const auto edge = [&](bool low) {
      const auto allowed = static_cast<uint64_t>(tail * static_cast<double>(total));
      uint64_t sum = 0;
      for (int i = 0; i < kBins; ++i) {
        const int bin = low ? i : kBins - 1 - i;
        sum += bins[static_cast<size_t>(bin)];
        if (sum > allowed) return range.lo + (range.hi - range.lo) * static_cast<float>(low ? bin : bin + 1) / kBins;
      }
      return low ? range.lo : range.hi;
    };
    return {edge(true), edge(false), true};
  }
};

// Calls `visit` with every f32 tensor of the entry function, parameters included.
template <class F>
Status run_samples(const Context& context, const Module& module, Symbol entry, const Samples& samples, F&& visit) {
  const Function& function = *module.function(entry);
  for (const auto& sample : samples) {
    for (size_t i = 0; i < std::min(sample.size(), function.params.size()); ++i) visit(function.params[i], sample[i]);
    const auto observe = [&](const Function& running, const Binding& binding, const RunValue& value) {
      if (&running == &function && value.tensor()) visit(binding.var, value.tensor());
    };
    TENON_TRY(interpret(context, module, entry, std::span<const runtime::Tensor>(sample), observe));
  }
  return {};
}

}  // namespace

Expected<Calibration> parse_calibration(std::string_view text) {
  if (text == "minmax") return Calibration::kMinMax;
  if (text == "percentile") return Calibration::kPercentile;
  return error(fmt::format("unknown calibration \"{}\"", text), {}, "the methods are minmax and percentile",
               Fault::kUsage);
}

Expected<Ranges> calibrate(const Context& context, const Module& module, Symbol entry, const Samples& samples,
                           const CalibrationOptions& options) {
  if (!module.function(entry)) {
    return error(fmt::format("the module has no function @{}", context.name(entry)), {}, {}, Fault::kInternal);
  }
  if (samples.empty())
    return error("calibration requires at least one sample", {}, "use data like the model's later inputs");
  if (!(options.percentile > 0.5 && options.percentile <= 1)) {
    return error(fmt::format("percentile is {}, must be above 0.5 and at most 1", options.percentile), {}, {},
                 Fault::kUsage);
  }
  const Function& function = *module.function(entry);
  Ranges ranges(function.vars.size());
  std::string not_finite;
  const auto widen = [&](VarId var, const runtime::Tensor& tensor) {
    if (tensor.dtype() != runtime::DType::kF32) return;
    Range& range = ranges[index(var)];
    for (const float value : tensor.data<float>()) {
      if (!std::isfinite(value) && not_finite.empty()) {
        not_finite = fmt::format("a value of %{} is {}", context.name(function.info(var).name), value);
      }
      range.lo = range.observed ? std::min(range.lo, value) : value;
      range.hi = range.observed ? std::max(range.hi, value) : value;
      range.observed = true;
    }
  };
  TENON_TRY(run_samples(context, module, entry, samples, widen));
  if (!not_finite.empty()) return error(not_finite + " during calibration", {}, "check the data and its normalization");
  if (options.method == Calibration::kMinMax) return ranges;

  std::vector<Histogram> histograms(ranges.size());
  const auto count = [&](VarId var, const runtime::Tensor& tensor) {
    if (tensor.dtype() != runtime::DType::kF32) return;
    for (const float value : tensor.data<float>()) histograms[index(var)].add(value, ranges[index(var)]);
  };
  TENON_TRY(run_samples(context, module, entry, samples, count));
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].observed) ranges[i] = histograms[i].cut(ranges[i], (1 - options.percentile) / 2);
  }
  return ranges;
}

}  // namespace tenon::compiler
