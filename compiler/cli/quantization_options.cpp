#include "compiler/cli/quantization_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "support/try.h"

namespace tenon::cli {
namespace {

// The largest weight by the width of weights.
constexpr std::pair<std::string_view, int> kWeightLimits[] = {{"8bit", 127}, {"7bit", 64}, {"6bit", 31}, {"5bit", 15},
                                                              {"4bit", 7},   {"3bit", 3},  {"2bit", 1}};

}  // namespace

void QuantizationOptions::declare(Options& options) {
  options.repeated(
      calibration_data, "--calibrate", "[NAME=]FILE",
      "quantize to int8 with these samples: FILE.npy or FILE.npz:MEMBER; NAME=FILE for each of several inputs");
  options.choice(
      method, "--calibration", {"minmax", "percentile", "kl", "mse", "measured"},
      "method that takes ranges from the samples; measured: the one with the least error of the results, with "
      "--correct-biases and --equalize where they lessen it");
  options.flag(correct_biases, "--correct-biases",
               "subtract from each bias of a layer what the rounding of the weights adds to the mean of its results");
  options.flag(equalize, "--equalize", "scale channels between layers so that their ranges are alike");
  options.option(percentile, "--percentile", "P", "fraction of the values that --calibration percentile keeps",
                 {.least = 0.5, .most = 1, .above = true});
  options.repeated(keep, "--keep", "NODE",
                   "the layer of this node of the model stays in float, all others are quantized; may be repeated");
  options.option(accuracy, "--accuracy", "P",
                 "as many layers stay in float, the most sensitive first, as make the results on the samples of "
                 "--calibrate agree with the float model's to P, as 0.99",
                 {.least = 0, .most = 1, .above = true});
  options.choice(
      agreement, "--agreement", {"cosine", "top1"},
      "what --accuracy requires: the mean cosine of the results, or the share of samples with the same class");
  options.flag(symmetric, "--symmetric", "activations without zero points");
  std::vector<std::string> widths;
  for (const auto& [width, limit] : kWeightLimits) widths.emplace_back(width);
  options.choice(weights, "--weights", widths,
                 "width of weights: the largest is 127, 64 (exact sums of these take fewer instructions without dot "
                 "products), 31, 15, 7, 3 or 1");
}

Status QuantizationOptions::apply(compiler::CompileOptions& options, bool has_samples) const {
  for (const auto& [option, given] : {std::pair("--keep", !keep.empty()), {"--accuracy", accuracy != 0}}) {
    if (!given || has_samples) continue;
    return error(fmt::format("{} requires --calibrate: without it, no layer is quantized", option), {},
                 fmt::format("give samples, or omit {}", option), Fault::kUsage);
  }
  TENON_TRY_ASSIGN(parsed, compiler::parse_calibration(method));
  options.calibrate.method = *parsed;
  options.calibrate.percentile = percentile;
  options.calibrate.correct_biases = correct_biases;
  options.calibrate.equalize = equalize;
  options.quantize.symmetric = symmetric;
  options.quantize.weight_limit =
      std::ranges::find(kWeightLimits, weights, &std::pair<std::string_view, int>::first)->second;
  options.keep = keep;
  TENON_TRY_ASSIGN(required, compiler::parse_agreement(agreement));
  options.accuracy = {.least = accuracy, .agreement = *required};
  return {};
}

}  // namespace tenon::cli
