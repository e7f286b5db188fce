#include "compiler/quantize/parameters.h"

#include <algorithm>
#include <cmath>

namespace tenon::compiler {
namespace {

struct Normalized {
  int64_t mantissa = 0;  // 2^15 .. 2^16 - 1
  int shift = 0;         // value = mantissa * 2^-shift
};

Normalized normalize(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // 0.5 .. 1
  auto mantissa = static_cast<int64_t>(std::nearbyint(fraction * 65536));
  if (mantissa == 65536) mantissa = 32768, ++exponent;
  return {mantissa, 16 - exponent};
}

}  // namespace

int64_t Scale::quantize(double real) const { return static_cast<int64_t>(std::nearbyint(real / scale)) + zero; }

std::pair<int8_t, int8_t> integer_bounds(const Clamp& clamp, const Scale& scale) {
  const auto bound = [&](double real, int64_t none) {
    if (std::isinf(real)) return static_cast<int8_t>(none);
    const double steps = std::clamp(std::nearbyint(real / scale.scale), -1e6, 1e6);
    return static_cast<int8_t>(std::clamp<int64_t>(static_cast<int64_t>(steps) + scale.zero, -128, 127));
  };
  return {bound(clamp.lo, -128), bound(clamp.hi, 127)};
}

std::pair<int16_t, int16_t> step_bounds(const Clamp& clamp, const Scale& scale) {
  const auto bound = [&](double real) {
    return static_cast<int16_t>(std::clamp(std::nearbyint(real / scale.scale), -2048.0, 2047.0));
  };
  return {bound(clamp.lo), bound(clamp.hi)};
}

Scale scale_for(const Range& range, bool symmetric) {
  const double lo = std::min(0.0, static_cast<double>(range.lo)), hi = std::max(0.0, static_cast<double>(range.hi));
  constexpr double kSmallest = 1e-30;  // a range of zeros only still needs a scale
  if (symmetric) {
    const double largest = std::max(-lo, hi);
    return {largest > kSmallest ? largest / 127 : 1.0, 0};
  }
  if (hi - lo <= kSmallest) return {1.0, 0};
  const double scale = (hi - lo) / 255;
  return {scale, static_cast<int8_t>(std::clamp(std::nearbyint(-128 - lo / scale), -128.0, 127.0))};
}

QuantizedWeights quantize_weights(std::span<const float> weights, size_t channels, std::span<const float> bias,
                                  double input_scale, double limit) {
  QuantizedWeights result;
  const size_t per_channel = weights.size() / channels;
  result.values.reserve(weights.size());
  for (size_t c = 0; c < channels; ++c) {
    const auto channel = weights.subspan(c * per_channel, per_channel);
    double largest = 0;
    for (const float w : channel) largest = std::max(largest, std::abs(static_cast<double>(w)));
    double scale = largest > 0 ? largest / limit : 1.0;
    if (!bias.empty()) scale = std::max(scale, std::abs(static_cast<double>(bias[c])) / (input_scale * (1 << 30)));
    int64_t sum = 0;
    for (const float w : channel) {
      const double q = std::clamp(std::nearbyint(w / scale), -limit, limit);
      result.values.push_back(static_cast<int8_t>(q));
      sum += static_cast<int64_t>(q);
    }
    result.scales.push_back(scale);
    result.sums.push_back(sum);
  }
  return result;
}

std::vector<double> mean_errors(const runtime::Tensor& weights, const QuantizedWeights& quantized, int64_t groups,
                                std::span<const double> input_means) {
  const auto channels = static_cast<size_t>(weights.shape()[0]), inputs = static_cast<size_t>(weights.shape()[1]);
  const size_t per_channel = quantized.values.size() / channels, kernel = per_channel / inputs;
  const auto real = weights.data<float>();
  std::vector<double> errors(channels);
  for (size_t i = 0; i < quantized.values.size(); ++i) {
    const size_t channel = i / per_channel, group = channel / (channels / static_cast<size_t>(groups));
    const double mean = input_means[group * inputs + i % per_channel / kernel];
    errors[channel] += (quantized.values[i] * quantized.scales[channel] - double{real[i]}) * mean;
  }
  return errors;
}

spec::ChannelParameters requantize_ratio(double ratio) {
  const Normalized n = normalize(ratio);
  const int shift = n.shift - 8;
  if (!(ratio > 0) || shift > spec::kMaxShift) return {};
  if (shift < 0) return {0, 0xffff, 0};
  return {0, static_cast<uint16_t>(n.mantissa), static_cast<uint8_t>(shift)};
}

void set_residual(spec::LayerParameters& layer, double ratio, int8_t zero) {
  layer.residual = true;
  layer.r_zero = zero;
  const Normalized n = normalize(ratio * 256);
  if (!(ratio > 0) || n.shift > spec::kMaxResidualShift) {
    layer.r_multiplier = 0, layer.r_shift = 0;
  } else if (n.shift < 0) {
    layer.r_multiplier = 0xffff, layer.r_shift = 0;
  } else {
    layer.r_multiplier = static_cast<uint16_t>(n.mantissa), layer.r_shift = static_cast<uint8_t>(n.shift);
  }
}

}  // namespace tenon::compiler
