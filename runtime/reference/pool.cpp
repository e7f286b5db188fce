// Reductions over windows and maps of x [N, C, ...] with one to three spatial dims.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/reference/support.h"

namespace tenon::runtime::reference {
namespace {

constexpr int64_t kMaxAttr = 1 << 20;
using Spatial =
    std::array<int64_t, 3>;  // depth, height, width; leading dims that the operator does not have are of size 1

// An image is one channel of one batch element.
struct Pool {
  int64_t images = 0;
  Spatial in{1, 1, 1}, out{1, 1, 1};
  Spatial kernel{1, 1, 1}, strides{1, 1, 1}, before{0, 0, 0}, after{0, 0, 0}, dilation{1, 1, 1};
  Shape shape;  // of the result

  int64_t in_map() const { return in[0] * in[1] * in[2]; }
};

// x has `rank` spatial dims; 0: one to three.
void read_maps(Call& call, int64_t rank, Pool& p) {
  call.expect_inputs(1);
  const auto dims = static_cast<int64_t>(call.input(0).shape().size());
  call.expect(rank == 0 ? dims >= 3 && dims <= 5 : dims == rank + 2, "x has a wrong number of dims");
  if (!call.ok()) return;
  p.images = call.dim(0, 0) * call.dim(0, 1);
  p.shape = call.input(0).shape();
  for (int64_t i = 0; i < dims - 2; ++i) p.in[5 - dims + i] = p.shape[2 + i];
}

Pool read_pool(Call& call, int64_t rank, bool dilated) {
  Pool p;
  read_maps(call, rank, p);
  const auto count = static_cast<size_t>(rank);
  const auto kernel = call.integers("kernel", count, 1, kMaxAttr),
             strides = call.integers("strides", count, 1, kMaxAttr);
  const auto padding = call.integers("padding", 2 * count, 0, kMaxAttr);
  const auto dilation = dilated ? call.integers("dilation", count, 1, kMaxAttr) : std::vector<int64_t>(count, 1);
  const bool ceil = call.integer("ceil", 0, 1) == 1;
  for (size_t i = 0; i < count && call.ok(); ++i) {
    const size_t d = 3 - count + i;
    p.kernel[d] = kernel[i], p.strides[d] = strides[i], p.dilation[d] = dilation[i];
    p.before[d] = padding[i], p.after[d] = padding[count + i];
    p.out[d] = window_count(p.in[d], p.kernel[d], p.strides[d], p.before[d], p.after[d], p.dilation[d], ceil);
    call.expect(p.out[d] > 0, "the window is larger than the padded input");
    call.expect(p.before[d] < p.kernel[d] && p.after[d] < p.kernel[d], "padding must be smaller than the kernel");
    if (call.ok()) p.shape[2 + i] = p.out[d];
  }
  call.expect_size(p.shape);
  return p;
}

// visit(base of the image, index of the window) for each element of the result, in order.
template <class F>
void for_each_window(const Pool& p, F&& visit) {
  for (int64_t image = 0; image < p.images; ++image) {
    for (int64_t z = 0; z < p.out[0]; ++z) {
      for (int64_t y = 0; y < p.out[1]; ++y) {
        for (int64_t x = 0; x < p.out[2]; ++x) visit(image * p.in_map(), Spatial{z, y, x});
      }
    }
  }
}

// visit(offset in the image) for each element of a window that is inside the image.
template <class F>
void for_each_in_window(const Pool& p, const Spatial& window, F&& visit) {
  Spatial at{};
  auto inside = [&](int d, int64_t k) {
    at[d] = window[d] * p.strides[d] - p.before[d] + k * p.dilation[d];
    return at[d] >= 0 && at[d] < p.in[d];
  };
  for (int64_t z = 0; z < p.kernel[0]; ++z) {
    if (!inside(0, z)) continue;
    for (int64_t y = 0; y < p.kernel[1]; ++y) {
      if (!inside(1, y)) continue;
      for (int64_t x = 0; x < p.kernel[2]; ++x) {
        if (inside(2, x)) visit((at[0] * p.in[1] + at[1]) * p.in[2] + at[2]);
      }
    }
  }
}

template <class T>
constexpr T kLowestElement = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                  : std::numeric_limits<T>::lowest();

// The larger one, or the NaN among them: a NaN in a window is its maximum. (ONNX Runtime keeps or drops it by its
// position in the window; a window of one element would be -inf if it were dropped.)
template <class T>
T larger(T a, T b) {
  return b > a || b != b ? b : a;
}

// One element for each window: f(base of the image, window).
template <DTypes allowed, class F>
Result pooled(const Pool& p, const Tensor& in, F&& f) {
  Tensor out(in.dtype(), p.shape);
  with_arithmetic<allowed>(in.dtype(), [&]<class T>(T) {
    auto x = in.data<T>();
    T* y = out.data<T>().data();
    for_each_window(p, [&](int64_t base, const Spatial& window) {
      *y++ = f(x.subspan(static_cast<size_t>(base), static_cast<size_t>(p.in_map())), window);
    });
  });
  return std::vector{out};
}

template <Name op, int rank>
Result max_pool(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  call.expect_dtype(0, kNumericTypes);
  const Pool p = read_pool(call, rank, true);
  if (!call.ok()) return call.fail();
  return pooled<kNumericTypes>(p, inputs[0], [&]<class T>(std::span<const T> image, const Spatial& window) {
    T best = kLowestElement<T>;
    for_each_in_window(p, window, [&](int64_t at) { best = larger(best, image[at]); });
    return best;
  });
}

template <Name op, int rank>
Result avg_pool(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  call.expect_dtype(0, kReals);
  const bool count_pad = call.integer("count_include_pad", 0, 1) == 1;
  const Pool p = read_pool(call, rank, true);
  if (!call.ok()) return call.fail();
  return pooled<kReals>(p, inputs[0], [&]<class T>(std::span<const T> image, const Spatial& window) {
    T sum = 0;
    int64_t elements = 0, padded = 1;
    for_each_in_window(p, window, [&](int64_t at) { sum += image[at], ++elements; });
    // Elements of the padding count, elements past the padded end do not.
    for (int d : {0, 1, 2}) {
      const int64_t start = window[d] * p.strides[d] - p.before[d];
      const int64_t remaining = p.in[d] + p.after[d] - start;
      padded *= std::min((remaining + p.dilation[d] - 1) / p.dilation[d], p.kernel[d]);
    }
    return sum / static_cast<T>(count_pad ? padded : std::max<int64_t>(elements, 1));
  });
}

template <class T>
T norm(T sum, int64_t p) {
  return p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, T{1} / static_cast<T>(p));
}
template <class T>
T power_of(T x, int64_t p) {
  return p == 1 ? std::abs(x) : p == 2 ? x * x : std::pow(std::abs(x), static_cast<T>(p));
}

template <Name op, int rank>
Result lp_pool(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  call.expect_dtype(0, kReals);
  const int64_t power = call.integer("p", 1, 64);
  const Pool p = read_pool(call, rank, true);
  if (!call.ok()) return call.fail();
  return pooled<kReals>(p, inputs[0], [&]<class T>(std::span<const T> image, const Spatial& window) {
    T sum = 0;
    for_each_in_window(p, window, [&](int64_t at) { sum += power_of(image[at], power); });
    return norm(sum, power);
  });
}

// Whole maps: f(map) for each.
template <Name op, DTypes allowed, class F>
Result over_maps(const Attrs& attrs, std::span<const Tensor> inputs, F&& f) {
  Call call(op.view(), attrs, inputs);
  call.expect_dtype(0, allowed);
  Pool p;
  read_maps(call, 0, p);
  if (!call.ok()) return call.fail();
  std::fill(p.shape.begin() + 2, p.shape.end(), 1);
  return pooled<allowed>(p, inputs[0], [&]<class T>(std::span<const T> image, const Spatial&) { return f(image); });
}

Result global_avg_pool(const Attrs& attrs, std::span<const Tensor> inputs) {
  return over_maps<"global_avg_pool", kReals>(attrs, inputs, []<class T>(std::span<const T> map) {
    T sum = 0;
    for (T x : map) sum += x;
    return sum / static_cast<T>(map.size());
  });
}

Result global_max_pool(const Attrs& attrs, std::span<const Tensor> inputs) {
  return over_maps<"global_max_pool", kNumericTypes>(attrs, inputs, []<class T>(std::span<const T> map) {
    T best = kLowestElement<T>;
    for (T x : map) best = larger(best, x);
    return best;
  });
}

Result global_lp_pool(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("global_lp_pool", attrs, inputs);
  const int64_t power = call.integer("p", 1, 64);
  if (!call.ok()) return call.fail();
  return over_maps<"global_lp_pool", kReals>(attrs, inputs, [=]<class T>(std::span<const T> map) {
    T sum = 0;
    for (T x : map) sum += power_of(x, power);
    return norm(sum, power);
  });
}

Result global_sum_pool(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("global_sum_pool", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, {DType::kI8});
  call.expect_rank(0, 4);
  call.expect(call.dim(0, 2) * call.dim(0, 3) < (1 << 24), "the map is too large for a 32-bit sum");
  if (!call.ok()) return call.fail();
  Tensor out(DType::kI32, Shape{call.dim(0, 0), call.dim(0, 1), 1, 1});
  const auto map = static_cast<size_t>(call.dim(0, 2) * call.dim(0, 3));
  auto y = out.data<int32_t>();
  for (size_t i = 0; i < y.size(); ++i) {
    for (int8_t x : inputs[0].data<int8_t>().subspan(i * map, map)) y[i] += x;
  }
  return std::vector{out};
}

// Window i of n over a dim of size s is floor(i * s / n) .. ceil((i + 1) * s / n) - 1.
template <Name op, DTypes allowed, bool average>
Result adaptive_pool(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  call.expect_dtype(0, allowed);
  Pool p;
  read_maps(call, 0, p);
  const size_t count = call.ok() ? p.shape.size() - 2 : 0;
  const auto sizes = call.integers("size", count, 1, kMaxAttr);
  for (size_t i = 0; i < count && call.ok(); ++i) {
    p.shape[2 + i] = p.out[3 - count + i] = sizes[i];
    call.expect(p.in[3 - count + i] > 0, "the map is empty");
  }
  call.expect_size(p.shape);
  if (!call.ok()) return call.fail();
  return pooled<allowed>(p, inputs[0], [&]<class T>(std::span<const T> image, const Spatial& window) {
    Spatial first{}, end{};
    for (int d : {0, 1, 2}) {
      first[d] = window[d] * p.in[d] / p.out[d];
      end[d] = ((window[d] + 1) * p.in[d] + p.out[d] - 1) / p.out[d];
    }
    T sum = 0, best = kLowestElement<T>;
    int64_t elements = 0;
    for (int64_t z = first[0]; z < end[0]; ++z) {
      for (int64_t y = first[1]; y < end[1]; ++y) {
        for (int64_t x = first[2]; x < end[2]; ++x, ++elements) {
          const T value = image[(z * p.in[1] + y) * p.in[2] + x];
          if constexpr (average) sum += value;
          else best = larger(best, value);
        }
      }
    }
    return average ? static_cast<T>(sum / static_cast<T>(elements)) : best;
  });
}

}  // namespace

std::span<const Entry> pool_kernels() {
  static constexpr Entry kEntries[] = {
      {"max_pool1d", max_pool<"max_pool1d", 1>},
      {"max_pool2d", max_pool<"max_pool2d", 2>},
      {"max_pool3d", max_pool<"max_pool3d", 3>},
      {"avg_pool1d", avg_pool<"avg_pool1d", 1>},
      {"avg_pool2d", avg_pool<"avg_pool2d", 2>},
      {"avg_pool3d", avg_pool<"avg_pool3d", 3>},
      {"lp_pool1d", lp_pool<"lp_pool1d", 1>},
      {"lp_pool2d", lp_pool<"lp_pool2d", 2>},
      {"lp_pool3d", lp_pool<"lp_pool3d", 3>},
      {"global_avg_pool", global_avg_pool},
      {"global_max_pool", global_max_pool},
      {"global_lp_pool", global_lp_pool},
      {"global_sum_pool", global_sum_pool},
      {"adaptive_avg_pool", adaptive_pool<"adaptive_avg_pool", kReals, true>},
      {"adaptive_max_pool", adaptive_pool<"adaptive_max_pool", kNumericTypes, false>},
  };
  return kEntries;
}

}  // namespace tenon::runtime::reference
