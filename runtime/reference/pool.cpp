// Reductions over windows, maps and axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/reference/support.h"

namespace tenon::runtime::reference {
namespace {

constexpr int64_t kMaxAttr = 1 << 20;

// A pooling operator with its sizes; images are the maps of all channels.
struct Pool {
  int64_t images, height, width, out_h, out_w;
  std::vector<int64_t> kernel, strides, padding, dilation;
};

Expected<Pool> read_pool(Call& call, bool dilated) {
  call.expect_inputs(1);
  call.expect_rank(0, 4);
  Pool p{};
  p.kernel = call.integers("kernel", 2, 1, kMaxAttr);
  p.strides = call.integers("strides", 2, 1, kMaxAttr);
  p.padding = call.integers("padding", 4, 0, kMaxAttr);
  p.dilation = dilated ? call.integers("dilation", 2, 1, kMaxAttr) : std::vector<int64_t>{1, 1};
  const bool ceil = call.integer("ceil", 0, 1) == 1;
  if (!call.ok()) return call.fail();
  p.images = call.dim(0, 0) * call.dim(0, 1), p.height = call.dim(0, 2), p.width = call.dim(0, 3);
  p.out_h = window_count(p.height, p.kernel[0], p.strides[0], p.padding[0], p.padding[2], p.dilation[0], ceil);
  p.out_w = window_count(p.width, p.kernel[1], p.strides[1], p.padding[1], p.padding[3], p.dilation[1], ceil);
  call.expect(p.out_h > 0 && p.out_w > 0, "the window reaches beyond the padded input");
  for (int axis : {0, 1}) {
    call.expect(p.padding[axis] < p.kernel[axis] && p.padding[axis + 2] < p.kernel[axis],
                "padding must be smaller than the kernel");
  }
  call.expect_size(Shape{call.dim(0, 0), call.dim(0, 1), p.out_h, p.out_w});
  if (!call.ok()) return call.fail();
  return p;
}

template <class T>
Tensor max_of(const Pool& p, const Tensor& in) {
  Tensor out(in.dtype(), Shape{in.shape()[0], in.shape()[1], p.out_h, p.out_w});
  auto x = in.data<T>();
  T* y = out.data<T>().data();
  constexpr T kLowest =
      std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  for (int64_t image = 0; image < p.images; ++image) {
    for (int64_t oy = 0; oy < p.out_h; ++oy) {
      for (int64_t ox = 0; ox < p.out_w; ++ox) {
        T best = kLowest;
        for (int64_t ky = 0; ky < p.kernel[0]; ++ky) {
          const int64_t row = oy * p.strides[0] - p.padding[0] + ky * p.dilation[0];
          if (row < 0 || row >= p.height) continue;
          for (int64_t kx = 0; kx < p.kernel[1]; ++kx) {
            const int64_t column = ox * p.strides[1] - p.padding[1] + kx * p.dilation[1];
            if (column < 0 || column >= p.width) continue;
            best = std::max(best, x[(image * p.height + row) * p.width + column]);
          }
        }
        *y++ = best;
      }
    }
  }
  return out;
}

Result max_pool2d(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("max_pool2d", attrs, inputs);
  call.expect_dtype(0, {DType::kF32, DType::kI8});
  auto pool = read_pool(call, true);
  if (!pool) return forward_error(pool);
  const bool integer = inputs[0].dtype() == DType::kI8;
  return std::vector{integer ? max_of<int8_t>(*pool, inputs[0]) : max_of<float>(*pool, inputs[0])};
}

Result avg_pool2d(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("avg_pool2d", attrs, inputs);
  call.expect_dtype(0, {DType::kF32});
  const bool count_pad = call.integer("count_include_pad", 0, 1) == 1;
  auto pool = read_pool(call, false);
  if (!pool) return forward_error(pool);
  const Pool& p = *pool;
  Tensor out(DType::kF32, Shape{inputs[0].shape()[0], inputs[0].shape()[1], p.out_h, p.out_w});
  auto x = inputs[0].data<float>();
  float* y = out.data<float>().data();
  for (int64_t image = 0; image < p.images; ++image) {
    for (int64_t oy = 0; oy < p.out_h; ++oy) {
      for (int64_t ox = 0; ox < p.out_w; ++ox) {
        const int64_t top = oy * p.strides[0] - p.padding[0], left = ox * p.strides[1] - p.padding[1];
        const int64_t y0 = std::max<int64_t>(top, 0), y1 = std::min(top + p.kernel[0], p.height);
        const int64_t x0 = std::max<int64_t>(left, 0), x1 = std::min(left + p.kernel[1], p.width);
        float sum = 0;
        for (int64_t row = y0; row < y1; ++row) {
          for (int64_t column = x0; column < x1; ++column) sum += x[(image * p.height + row) * p.width + column];
        }
        // Padding counts, what hangs over the padded end does not.
        const int64_t padded = (std::min(top + p.kernel[0], p.height + p.padding[2]) - top) *
                               (std::min(left + p.kernel[1], p.width + p.padding[3]) - left);
        *y++ = sum / static_cast<float>(count_pad ? padded : std::max<int64_t>((y1 - y0) * (x1 - x0), 1));
      }
    }
  }
  return std::vector{out};
}

template <class In, class Sum>
void sum_maps(const Tensor& in, Tensor& out) {
  const int64_t map = in.shape()[2] * in.shape()[3];
  auto x = in.data<In>();
  auto y = out.data<Sum>();
  for (size_t i = 0; i < y.size(); ++i) {
    Sum sum = 0;
    for (int64_t j = 0; j < map; ++j) sum += x[i * map + j];
    y[i] = sum;
  }
}

Result global_avg_pool(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("global_avg_pool", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, {DType::kF32});
  call.expect_rank(0, 4);
  if (!call.ok()) return call.fail();
  Tensor out(DType::kF32, Shape{call.dim(0, 0), call.dim(0, 1), 1, 1});
  sum_maps<float, float>(inputs[0], out);
  const auto map = static_cast<float>(call.dim(0, 2) * call.dim(0, 3));
  for (float& value : out.data<float>()) value /= map;
  return std::vector{out};
}

Result global_sum_pool(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("global_sum_pool", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, {DType::kI8});
  call.expect_rank(0, 4);
  call.expect(call.dim(0, 2) * call.dim(0, 3) < (1 << 24), "the map is too large for a 32-bit sum");
  if (!call.ok()) return call.fail();
  Tensor out(DType::kI32, Shape{call.dim(0, 0), call.dim(0, 1), 1, 1});
  sum_maps<int8_t, int32_t>(inputs[0], out);
  return std::vector{out};
}

Result softmax(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("softmax", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, {DType::kF32});
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  if (!call.ok()) return call.fail();
  Tensor out(DType::kF32, inputs[0].shape());
  const AxisView view = view_axis(inputs[0].shape(), axis);
  auto x = inputs[0].data<float>();
  auto y = out.data<float>();
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < view.inner; ++i) {
      auto at = [&](int64_t k) { return (o * view.length + k) * view.inner + i; };
      float top = -std::numeric_limits<float>::infinity(), sum = 0;
      for (int64_t k = 0; k < view.length; ++k) top = std::max(top, x[at(k)]);
      for (int64_t k = 0; k < view.length; ++k) sum += y[at(k)] = std::exp(x[at(k)] - top);
      for (int64_t k = 0; k < view.length; ++k) y[at(k)] /= sum;
    }
  }
  return std::vector{out};
}

}  // namespace

std::span<const Entry> pool_kernels() {
  static constexpr Entry kEntries[] = {{"max_pool2d", max_pool2d},
                                       {"avg_pool2d", avg_pool2d},
                                       {"global_avg_pool", global_avg_pool},
                                       {"global_sum_pool", global_sum_pool},
                                       {"softmax", softmax}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
