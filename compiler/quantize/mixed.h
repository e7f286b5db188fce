// Mixed precision: the layers that stay in float, so that the results agree with those of the float function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/quantize/calibrate.h"
#include "compiler/quantize/quantize.h"
#include "compiler/quantize/sensitivity.h"

namespace tenon::compiler {

enum class Agreement : uint8_t { kCosine, kTop1 };  // mean_cosine() and top1_agreement() of results.h
std::string_view name(Agreement agreement);         // "cosine", "top1"
Expected<Agreement> parse_agreement(std::string_view text);

struct AccuracyTarget {
  double least = 0;  // above 0, at most 1; 0: no target
  Agreement agreement = Agreement::kCosine;
};

struct MixedPrecision {
  LayerSet keep;                  // with those of the options
  std::vector<Sensitivity> kept;  // the layers that the target requires in float
  double quantized = 1;           // agreement with the layers of the options in float only
  double reached = 1;             // with those of `keep` in float
  size_t layers = 0;              // that may be quantized
};

// What stays in float and why, for people: a line, and one for each layer that is kept.
std::string report(const MixedPrecision& precision, const AccuracyTarget& target, size_t samples);

// Keeps the n most sensitive layers, with the least n found by bisection whose agreement over all samples is the
// target. An error where no layer could be quantized, and for functions with control flow.
Expected<MixedPrecision> choose_precision(Context& context, const Module& module, Symbol entry, const Samples& samples,
                                          const Ranges& ranges, const AccuracyTarget& target,
                                          const QuantizeOptions& quantization, const CalibrationOptions& calibration);

}  // namespace tenon::compiler
