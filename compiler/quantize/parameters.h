// Converts real scales to the integers of hw/spec/requantize.h: scales, zero points, multipliers, shifts.
//
// A real value r is represented as scale * (q - zero).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/quantize/calibrate.h"
#include "hw/spec/requantize.h"

namespace tenon::compiler {

struct Scale {
  double scale = 1;
  int8_t zero = 0;
  bool operator==(const Scale&) const = default;

  int64_t quantize(double real) const;  // rounded half to even, not clamped
};

// The scales of quantized values, by their names.
using ValueScales = std::map<std::string, Scale, std::less<>>;

// Real bounds of a value: of a ReLU, a clip, or the range of a format.
struct Clamp {
  double lo = -std::numeric_limits<double>::infinity(), hi = std::numeric_limits<double>::infinity();
};
// The bounds as int8 values of the scale, rounded to the nearest.
std::pair<int8_t, int8_t> integer_bounds(const Clamp& clamp, const Scale& scale);
// The bounds in steps, without the zero point, as far as the fields v_lo and v_hi hold them.
std::pair<int16_t, int16_t> step_bounds(const Clamp& clamp, const Scale& scale);

// The finest int8 scale that holds the range and 0 exactly. Symmetric: zero is 0.
Scale scale_for(const Range& range, bool symmetric);

// Weights [channels][per_channel], symmetric per channel: values in -limit .. limit and one scale per channel. A
// channel's scale is never so small that its bias would exceed int32.
struct QuantizedWeights {
  std::vector<int8_t> values;
  std::vector<double> scales;
  std::vector<int64_t> sums;  // of the values, per channel
};
QuantizedWeights quantize_weights(std::span<const float> weights, size_t channels, std::span<const float> bias,
                                  double input_scale, double limit = 127);

// What the errors of the quantized weights add to the mean of each output channel, where the channels of the input have
// these means; weights [channels][input channels of a group][kernel]. Padding counts as the means.
std::vector<double> mean_errors(const runtime::Tensor& weights, const QuantizedWeights& quantized, int64_t groups,
                                std::span<const double> input_means);

// multiplier and shift with multiplier * 2^-(shift + 8) nearest to `ratio` > 0: 16 bits, normalized. Ratios outside
// the fields' range become 0 (less than an output step) or the largest value (the result saturates anyway).
spec::ChannelParameters requantize_ratio(double ratio);
// The parameters of the residual: r_multiplier * 2^-r_shift = 256 * ratio.
void set_residual(spec::LayerParameters& layer, double ratio, int8_t zero);

}  // namespace tenon::compiler
