// ReLU, sigmoid and their variants.
#include <cmath>
#include <limits>

#include "runtime/reference/map.h"

namespace tenon::runtime::reference {
namespace {

template <class T>
void clamp_elements(const Tensor& in, Tensor& out, double lo, double hi) {
  // Bounds are rounded into the range of T: towards each other for integers, so that all results are in [lo, hi].
  auto in_range = [](double bound) {
    if constexpr (std::is_floating_point_v<T>) return static_cast<T>(bound);
    if (bound < static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    // 2^n of the range's upper end is exact.
    if (bound >= std::ldexp(1.0, std::numeric_limits<T>::digits)) return std::numeric_limits<T>::max();
    return static_cast<T>(bound);
  };
  const T low = in_range(std::is_integral_v<T> ? std::ceil(lo) : lo),
          high = in_range(std::is_integral_v<T> ? std::floor(hi) : hi);
  std::ranges::transform(in.data<T>(), out.data<T>().begin(), [=](T x) { return std::min(std::max(x, low), high); });
}

Result clamp_between(Call& call, std::span<const Tensor> inputs, double lo, double hi) {
  call.expect_inputs(1);
  call.expect_dtype(0, kNumericTypes);
  call.expect(lo <= hi, "min is above max");
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), inputs[0].shape());
  with_arithmetic<kNumericTypes>(out.dtype(), [&]<class T>(T) { clamp_elements<T>(inputs[0], out, lo, hi); });
  return std::vector{out};
}

Result relu(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("relu", attrs, inputs);
  return clamp_between(call, inputs, 0, std::numeric_limits<double>::infinity());
}
Result clip(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("clip", attrs, inputs);
  const double lo = call.real("min"), hi = call.real("max");
  return clamp_between(call, inputs, lo, hi);
}

Result prelu(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("prelu", attrs, inputs);
  if (inputs.size() == 2) {
    const Shape shape = broadcast_shape(call);
    call.expect(shape == inputs[0].shape(), "the slope does not broadcast to x");
    if (!call.ok()) return call.fail();
  }
  return zip_elements<"prelu", kReals>(attrs, inputs, [](auto x, auto slope) { return x < 0 ? slope * x : x; });
}

// ln(1 + exp(x)), without overflow.
constexpr auto kSoftplus = [](auto x) { return std::max(x, decltype(x){0}) + std::log1p(std::exp(-std::abs(x))); };
constexpr auto kSigmoid = [](auto x) { return decltype(x){1} / (decltype(x){1} + std::exp(-x)); };
constexpr auto kHardSigmoid = [](auto x, auto alpha, auto beta) {
  using T = decltype(x);
  return std::max(std::min(alpha * x + beta, T{1}), T{0});  // NaN for NaN
};

}  // namespace

std::span<const Entry> activation_kernels() {
  static constexpr Entry kEntries[] = {
      {"relu", relu},
      {"clip", clip},
      {"prelu", prelu},
      real<"sigmoid">(kSigmoid),
      real<"tanh">([](auto x) { return std::tanh(x); }),
      real<"softplus">(kSoftplus),
      real<"softsign">([](auto x) { return x / (1 + std::abs(x)); }),
      real<"swish", "alpha">([](auto x, auto alpha) { return x * kSigmoid(alpha * x); }),
      real<"mish">([](auto x) { return x * std::tanh(kSoftplus(x)); }),
      real<"gelu">([](auto x) { return x / 2 * (1 + std::erf(x * decltype(x)(M_SQRT1_2))); }),
      real<"gelu_tanh">([](auto x) {
        using T = decltype(x);
        return x / 2 * (1 + std::tanh(T(M_2_SQRTPI * M_SQRT1_2) * (x + T(0.044715) * x * x * x)));
      }),
      real<"elu", "alpha">([](auto x, auto alpha) { return x < 0 ? alpha * std::expm1(x) : x; }),
      real<"selu", "alpha", "gamma">(
          [](auto x, auto alpha, auto gamma) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); }),
      real<"celu", "alpha">([](auto x, auto alpha) { return x < 0 ? alpha * std::expm1(x / alpha) : x; }),
      real<"leaky_relu", "alpha">([](auto x, auto alpha) { return x < 0 ? alpha * x : x; }),
      real<"thresholded_relu", "alpha">([](auto x, auto alpha) { return x > alpha ? x : 0; }),
      real<"hard_sigmoid", "alpha", "beta">(kHardSigmoid),
      real<"hard_swish">([](auto x) {
        using T = decltype(x);
        return x * kHardSigmoid(x, T(1.0 / 6), T(0.5));
      }),
      real<"shrink", "bias", "lambda">([](auto x, auto bias, auto lambda) {
        return x < -lambda ? x + bias : x > lambda ? x - bias : 0;
      }),
  };
  return kEntries;
}

}  // namespace tenon::runtime::reference
