// Calibration: the range of every value of a float function, and of those that it calls, over the user's data.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/quantize/runner.h"

namespace tenon::compiler {

enum class Calibration : uint8_t {
  kMinMax,        // all observed values
  kPercentile,    // all but the outermost (1 - percentile) / 2 on each side, by a histogram
  kDivergence,    // the least divergence of the int8 values' distribution from that of the floats, by a histogram
  kSquaredError,  // the least mean squared error of the int8 values, by a histogram
  // The one of these whose int8 function differs least from the float one, with corrected biases and equalized layers
  // where these lessen the difference (measured.h).
  kMeasured,
};
std::string_view name(Calibration method);                       // "minmax", "percentile", "kl", "mse", "measured"
Expected<Calibration> parse_calibration(std::string_view text);  // of a name

struct CalibrationOptions {
  Calibration method = Calibration::kMinMax;
  double percentile = 0.9999;   // 0.5 .. 1
  bool correct_biases = false;  // QuantizeOptions::means; kMeasured tries both
  bool equalize = false;        // equalize.h; kMeasured tries both
  // Runs the function; empty: the interpreter, which functions with control flow need in any case.
  Runner runner = {};
  // Called before and after each sample of a step of the calibration.
  std::function<void(std::string_view step, size_t done, size_t total)> progress = {};
};

struct Range {
  float lo = 0, hi = 0;
  bool observed = false;
};
// By function, and by VarId of the function: parameters, and values that the layers require; tensors of f32 only. A
// value in code that no sample reached is not observed.
using Ranges = std::map<Symbol, std::vector<Range>>;

// One list of inputs per sample, as for interpret().
using Samples = std::vector<std::vector<runtime::Tensor>>;

// Runs `entry` on every sample, and takes the ranges by the method; kMeasured is an error.
// An empty list of samples, or a value that is not finite, is an error.
Expected<Ranges> calibrate(Context& context, const Module& module, Symbol entry, const Samples& samples,
                           const CalibrationOptions& options = {});

}  // namespace tenon::compiler
