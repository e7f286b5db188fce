#include "compiler/quantize/mixed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "compiler/quantize/results.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// Agreement of the quantized function with the float one.
class Trial {
 public:
  static Expected<Trial> create(Context& context, const Module& module, Symbol entry, const Samples& samples,
                                const Ranges& ranges, Agreement agreement, const CalibrationOptions& calibration) {
    Trial trial{context, module, entry, samples, ranges, agreement, calibration};
    TENON_TRY_ASSIGN(expected, run_samples(trial.runner_, module, entry, samples, samples.size()));
    trial.expected_ = std::move(*expected);
    return trial;
  }

  Expected<double> operator()(const QuantizeOptions& quantization) {
    if (*progress_) (*progress_)(fmt::format("trying mixed precision {}", ++count_), 0, 1);
    TENON_TRY_ASSIGN(quantized, quantize(*context_, *module_, entry_, *ranges_, quantization));
    TENON_TRY_ASSIGN(found, run_samples(runner_, *quantized, entry_, *samples_, samples_->size()));
    return agreement_ == Agreement::kCosine ? mean_cosine(*found, expected_) : top1_agreement(*found, expected_);
  }

 private:
  Trial(Context& context, const Module& module, Symbol entry, const Samples& samples, const Ranges& ranges,
        Agreement agreement, const CalibrationOptions& calibration)
      : context_(&context),
        module_(&module),
        entry_(entry),
        samples_(&samples),
        ranges_(&ranges),
        agreement_(agreement),
        progress_(&calibration.progress),
        runner_(calibration.runner ? calibration.runner : interpreter(context)) {}

  Context* context_;
  const Module* module_;
  Symbol entry_;
  const Samples* samples_;
  const Ranges* ranges_;
  Agreement agreement_;
  const std::function<void(std::string_view, size_t, size_t)>* progress_;
  Runner runner_;
  Results expected_;
  int count_ = 0;
};

Status check_target(const AccuracyTarget& target, const Module& module, Symbol entry) {
  if (!(target.least > 0 && target.least <= 1)) {
    return error(fmt::format("the accuracy is {}, must be above 0 and at most 1", target.least), {},
                 "0.99 requires a mean cosine of 0.99 between the results and those of the float model", Fault::kUsage);
  }
  if (first_order(module, *module.function(entry))) return {};
  return error("the accuracy of a model with control flow is not measured layer by layer", {},
               "choose the layers that stay in float by --keep", Fault::kUsage);
}

}  // namespace

std::string_view name(Agreement agreement) { return agreement == Agreement::kCosine ? "cosine" : "top1"; }

Expected<Agreement> parse_agreement(std::string_view text) {
  if (text == name(Agreement::kCosine)) return Agreement::kCosine;
  if (text == name(Agreement::kTop1)) return Agreement::kTop1;
  return error(fmt::format("unknown agreement \"{}\"", text), {}, "it is cosine or top1", Fault::kUsage);
}

std::string report(const MixedPrecision& precision, const AccuracyTarget& target, size_t samples) {
  const std::string_view agreement = target.agreement == Agreement::kCosine ? "mean cosine" : "equal top-1";
  std::string text = fmt::format("accuracy: the quantized model agrees with the float one to {:.5f} ({}, {} samples)",
                                 precision.quantized, agreement, samples);
  if (precision.kept.empty()) return text + fmt::format("; required: {}\n", target.least);
  text += fmt::format("; to {:.5f}, required {}, with {} of {} layers in float:\n", precision.reached, target.least,
                      precision.kept.size(), precision.layers);
  for (const Sensitivity& kept : precision.kept) {
    text += fmt::format("  {}: quantized alone, the results differ by {:.2g} of their size\n", kept.layer.name,
                        std::sqrt(kept.error));
  }
  return text;
}

Expected<MixedPrecision> choose_precision(Context& context, const Module& module, Symbol entry, const Samples& samples,
                                          const Ranges& ranges, const AccuracyTarget& target,
                                          const QuantizeOptions& quantization, const CalibrationOptions& calibration) {
  TENON_TRY(check_target(target, module, entry));
  TENON_TRY_ASSIGN(trial, Trial::create(context, module, entry, samples, ranges, target.agreement, calibration));
  MixedPrecision result;
  result.keep = quantization.keep;
  TENON_TRY_ASSIGN(quantized, (*trial)(quantization));
  result.quantized = result.reached = *quantized;
  if (result.reached >= target.least) return result;

  TENON_TRY_ASSIGN(layers, sensitivities(context, module, entry, samples, ranges, quantization, calibration));
  result.layers = layers->size();
  const auto keeping = [&](size_t count) {
    QuantizeOptions options = quantization;
    for (size_t i = 0; i < count; ++i) options.keep.emplace((*layers)[i].layer.function, (*layers)[i].layer.root);
    return options;
  };
  double best = result.quantized;  // of any trial that failed
  size_t low = 0, high = layers->size();
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    TENON_TRY_ASSIGN(reached, (*trial)(keeping(middle)));
    if (*reached >= target.least) high = middle, result.reached = *reached;
    else low = middle, best = std::max(best, *reached);
  }
  if (high == layers->size()) {
    return error(fmt::format("an accuracy of {} is not reached: of {} layers, quantizing one gives a {} of {:.6f}",
                             target.least, layers->size(), name(target.agreement), best),
                 {}, "require less, calibrate with more data or another --calibration, or omit --calibrate",
                 Fault::kUsage);
  }
  result.keep = keeping(high).keep;
  result.kept.assign(layers->begin(), layers->begin() + static_cast<std::ptrdiff_t>(high));
  return result;
}

}  // namespace tenon::compiler
