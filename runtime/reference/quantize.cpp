// Quantization and dequantization. The arithmetic of requantization is in hw/spec/requantize.h.
#include "hw/spec/requantize.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/reference/support.h"

namespace tenon::runtime::reference {
namespace {

// scale[c], zero[c] of the channel of each element.
struct Scales {
  std::vector<float> scale;
  std::vector<int64_t> zero;
  AxisView view;
  size_t channel(int64_t i) const { return scale.size() == 1 ? 0 : static_cast<size_t>(i / view.inner % view.length); }
};

Scales read_scales(Call& call, int64_t lo, int64_t hi) {
  Scales scales;
  for (double scale : call.reals("scale")) scales.scale.push_back(static_cast<float>(scale));
  scales.zero = call.integers("zero_point", 0, lo, hi);
  call.expect(!scales.scale.empty(), "needs a scale");
  for (float scale : scales.scale) call.expect(scale > 0 && std::isfinite(scale), "a scale is not positive");
  if (scales.zero.size() == 1) scales.zero.resize(scales.scale.size(), scales.zero[0]);
  call.expect(scales.zero.size() == scales.scale.size(), "needs a zero point for each scale");
  if (scales.scale.size() > 1) {
    const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
    call.expect(call.dim(0, axis) == static_cast<int64_t>(scales.scale.size()), "needs a scale for each channel");
    scales.view = view_axis(call.input(0).shape(), axis);
  }
  return scales;
}

template <class T>
void quantize_all(const Scales& scales, const Tensor& in, Tensor& out) {
  auto x = in.data<float>();
  auto y = out.data<T>();
  constexpr float kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = scales.channel(static_cast<int64_t>(i));
    const float q = std::nearbyint(x[i] / scales.scale[c]) + static_cast<float>(scales.zero[c]);
    y[i] = static_cast<T>(std::isnan(q) ? 0.0f : std::min(std::max(q, kMin), kMax));
  }
}

Result quantize(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("quantize", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, {DType::kF32});
  const std::string dtype = call.string("dtype");
  call.expect(dtype == "i8" || dtype == "u8", "dtype must be i8 or u8");
  const Scales scales = read_scales(call, dtype == "u8" ? 0 : -128, dtype == "u8" ? 255 : 127);
  if (!call.ok()) return call.fail();
  Tensor out(dtype == "i8" ? DType::kI8 : DType::kU8, inputs[0].shape());
  if (dtype == "i8") quantize_all<int8_t>(scales, inputs[0], out);
  else quantize_all<uint8_t>(scales, inputs[0], out);
  return std::vector{out};
}

template <class T>
void dequantize_all(const Scales& scales, const Tensor& in, Tensor& out) {
  auto x = in.data<T>();
  auto y = out.data<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = scales.channel(static_cast<int64_t>(i));
    y[i] = static_cast<float>(int64_t{x[i]} - scales.zero[c]) * scales.scale[c];
  }
}

Result dequantize(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("dequantize", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, {DType::kI8, DType::kU8, DType::kI32});
  const Scales scales = read_scales(call, INT32_MIN, INT32_MAX);
  if (!call.ok()) return call.fail();
  Tensor out(DType::kF32, inputs[0].shape());
  switch (inputs[0].dtype()) {
    case DType::kI8: dequantize_all<int8_t>(scales, inputs[0], out); break;
    case DType::kU8: dequantize_all<uint8_t>(scales, inputs[0], out); break;
    default: dequantize_all<int32_t>(scales, inputs[0], out); break;
  }
  return std::vector{out};
}

Result dynamic_quantize(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("dynamic_quantize", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, {DType::kF32});
  if (!call.ok()) return call.fail();
  float lo = 0, hi = 0;
  for (float x : inputs[0].data<float>()) {
    call.expect(std::isfinite(x), "an element is not finite");
    lo = std::min(lo, x), hi = std::max(hi, x);
  }
  if (!call.ok()) return call.fail();
  const float range = (hi - lo) / 255, step = range > 0 ? range : 1;
  const float zero = std::nearbyint(std::clamp(-lo / step, 0.0f, 255.0f));
  Tensor out(DType::kU8, inputs[0].shape());
  std::ranges::transform(inputs[0].data<float>(), out.data<uint8_t>().begin(), [&](float x) {
    return static_cast<uint8_t>(std::clamp(std::nearbyint(x / step) + zero, 0.0f, 255.0f));
  });
  return std::vector{out, Tensor::of<float>({}, std::array{step}),
                     Tensor::of<uint8_t>({}, std::array{static_cast<uint8_t>(zero)})};
}

Result requantize_all(std::string_view op, bool residual, const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op, attrs, inputs);
  call.expect_inputs(residual ? 5 : 4);
  call.expect_dtype(0, {DType::kI32});
  call.expect_dtype(1, {DType::kI32});
  call.expect_dtype(2, {DType::kU16});
  call.expect_dtype(3, {DType::kU8});
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  for (size_t i = 1; i < 4; ++i) {
    call.expect_rank(i, 1);
    call.expect(call.dim(i, 0) == call.dim(0, axis), "a parameter's length is not the number of channels");
  }
  spec::LayerParameters layer;
  layer.zero = static_cast<int8_t>(call.integer("zero", -128, 127));
  layer.lo = static_cast<int8_t>(call.integer("lo", -128, 127));
  layer.hi = static_cast<int8_t>(call.integer("hi", -128, 127));
  layer.v_lo = static_cast<int16_t>(call.integer("v_lo", -2048, 2047));
  layer.v_hi = static_cast<int16_t>(call.integer("v_hi", -2048, 2047));
  if (residual) {
    call.expect_dtype(4, {DType::kI8});
    call.expect(call.input(4).shape() == call.input(0).shape(), "the residual has another shape");
    layer.residual = true;
    layer.r_zero = static_cast<int8_t>(call.integer("r_zero", -128, 127));
    layer.r_multiplier = static_cast<uint16_t>(call.integer("r_multiplier", 0, 65535));
    layer.r_shift = static_cast<uint8_t>(call.integer("r_shift", 0, spec::kMaxResidualShift));
  }
  if (!call.ok()) return call.fail();
  auto bias = inputs[1].data<int32_t>();
  auto multiplier = inputs[2].data<uint16_t>();
  auto shift = inputs[3].data<uint8_t>();
  for (uint8_t s : shift) call.expect(s < 64, "a shift is beyond 63");
  if (!call.ok()) return call.fail();
  const AxisView view = view_axis(inputs[0].shape(), axis);
  Tensor out(DType::kI8, inputs[0].shape());
  auto acc = inputs[0].data<int32_t>();
  auto y = out.data<int8_t>();
  const int8_t* r = residual ? inputs[4].data<int8_t>().data() : nullptr;
  size_t i = 0;
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t c = 0; c < view.length; ++c) {
      const spec::ChannelParameters channel{bias[c], multiplier[c], shift[c]};
      for (int64_t k = 0; k < view.inner; ++k, ++i)
        y[i] = spec::requantize(acc[i], channel, layer, r ? r[i] : int8_t{0});
    }
  }
  return std::vector{out};
}

Result requantize(const Attrs& attrs, std::span<const Tensor> inputs) {
  return requantize_all("requantize", false, attrs, inputs);
}
Result requantize_add(const Attrs& attrs, std::span<const Tensor> inputs) {
  return requantize_all("requantize_add", true, attrs, inputs);
}

}  // namespace

std::span<const Entry> quantize_kernels() {
  static constexpr Entry kEntries[] = {{"quantize", quantize},
                                       {"dequantize", dequantize},
                                       {"dynamic_quantize", dynamic_quantize},
                                       {"requantize", requantize},
                                       {"requantize_add", requantize_add}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
