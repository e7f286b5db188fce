// Convolutions over one to three spatial dims: for each output pixel the window is gathered into a column, and the
// column is multiplied with all output channels: the definition, with the loops in a cache-friendly order.
#include <algorithm>
#include <array>

#include "runtime/reference/product.h"

namespace tenon::runtime::reference {
namespace {

constexpr int64_t kMaxAttr = 1 << 20;
using Spatial =
    std::array<int64_t, 3>;  // depth, height, width; leading dims that the operator does not have are of size 1

struct Convolution {
  int64_t batch = 0, channels = 0, outputs = 0, groups = 1, pad_value = 0;
  Spatial in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1};
  Spatial strides{1, 1, 1}, before{0, 0, 0}, after{0, 0, 0}, dilation{1, 1, 1}, more{0, 0, 0};

  int64_t in_map() const { return in[0] * in[1] * in[2]; }
  int64_t out_map() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }
};

template <class T>
void convolve(const Convolution& c, std::span<const T> x, std::span<const T> w, std::span<Sum<T>> out) {
  const int64_t group_in = c.channels / c.groups, group_out = c.outputs / c.groups;
  const int64_t depth = group_in * c.kernel_size();
  std::vector<Factor<T>> column(depth);
  std::vector<Sum<T>> result(group_out);
  for (int64_t g = 0; g < c.groups; ++g) {
    const std::vector<Factor<T>> weights =
        prepare(w.subspan(g * group_out * depth, group_out * depth), group_out, depth);
    for (int64_t n = 0; n < c.batch; ++n) {
      const T* image = x.data() + (n * c.channels + g * group_in) * c.in_map();
      Sum<T>* image_out = out.data() + (n * c.outputs + g * group_out) * c.out_map();
      int64_t pixel = 0;
      for (int64_t oz = 0; oz < c.out[0]; ++oz) {
        for (int64_t oy = 0; oy < c.out[1]; ++oy) {
          for (int64_t ox = 0; ox < c.out[2]; ++ox, ++pixel) {
            Factor<T>* next = column.data();
            for (int64_t i = 0; i < group_in; ++i) {
              for (int64_t kz = 0; kz < c.kernel[0]; ++kz) {
                const int64_t z = oz * c.strides[0] - c.before[0] + kz * c.dilation[0];
                const bool slice_inside = z >= 0 && z < c.in[0];
                for (int64_t ky = 0; ky < c.kernel[1]; ++ky) {
                  const int64_t y = oy * c.strides[1] - c.before[1] + ky * c.dilation[1];
                  const bool row_inside = slice_inside && y >= 0 && y < c.in[1];
                  const T* row = image + (row_inside ? ((i * c.in[0] + z) * c.in[1] + y) * c.in[2] : 0);
                  for (int64_t kx = 0; kx < c.kernel[2]; ++kx) {
                    const int64_t column_x = ox * c.strides[2] - c.before[2] + kx * c.dilation[2];
                    const bool inside = row_inside && column_x >= 0 && column_x < c.in[2];
                    *next++ = inside ? static_cast<Factor<T>>(row[column_x]) : static_cast<Factor<T>>(c.pad_value);
                  }
                }
              }
            }
            multiply(column, weights, group_out, result.data());
            for (int64_t m = 0; m < group_out; ++m) image_out[m * c.out_map() + pixel] = result[m];
          }
        }
      }
    }
  }
}

// Each input element adds its multiples of the kernel to the output elements under the kernel.
template <class T>
void convolve_transposed(const Convolution& c, std::span<const T> x, std::span<const T> w, std::span<T> out) {
  const int64_t group_in = c.channels / c.groups, group_out = c.outputs / c.groups;
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t i = 0; i < c.channels; ++i) {
      for (int64_t at = 0; at < c.in_map(); ++at) {
        const T value = x[(n * c.channels + i) * c.in_map() + at];
        const Spatial from{at / (c.in[1] * c.in[2]), at / c.in[2] % c.in[1], at % c.in[2]};
        for (int64_t m = 0; m < group_out; ++m) {
          T* map = out.data() + (n * c.outputs + i / group_in * group_out + m) * c.out_map();
          for (int64_t kernel_index = 0; kernel_index < c.kernel_size(); ++kernel_index) {
            const Spatial k{kernel_index / (c.kernel[1] * c.kernel[2]), kernel_index / c.kernel[2] % c.kernel[1],
                            kernel_index % c.kernel[2]};
            int64_t to = 0;
            bool inside = true;
            for (int d : {0, 1, 2}) {
              const int64_t coordinate = from[d] * c.strides[d] - c.before[d] + k[d] * c.dilation[d];
              inside &= coordinate >= 0 && coordinate < c.out[d];
              to = to * c.out[d] + coordinate;
            }
            if (inside) map[to] += value * w[(i * group_out + m) * c.kernel_size() + kernel_index];
          }
        }
      }
    }
  }
}

// Reads the common attributes of both kinds; `rank` is the number of spatial dims.
Convolution read(Call& call, int rank, bool transposed) {
  call.expect_inputs(2);
  call.expect_dtype(0, transposed ? kReals : kFactors);
  call.expect_one_dtype();
  call.expect_rank(0, rank + 2);
  call.expect_rank(1, rank + 2);
  const auto count = static_cast<size_t>(rank);
  const auto strides = call.integers("strides", count, 1, kMaxAttr);
  const auto padding = call.integers("padding", 2 * count, 0, kMaxAttr);
  const auto dilation = call.integers("dilation", count, 1, kMaxAttr);
  const auto more = transposed ? call.integers("output_padding", count, 0, kMaxAttr) : std::vector<int64_t>(count, 0);
  Convolution c;
  c.groups = call.integer("groups", 1, kMaxAttr);
  c.pad_value = transposed ? 0 : call.integer("pad_value", -128, 127);
  if (!call.ok()) return c;
  c.batch = call.dim(0, 0), c.channels = call.dim(0, 1);
  c.outputs = transposed ? call.dim(1, 1) * c.groups : call.dim(1, 0);
  const bool fits = transposed ? c.channels == call.dim(1, 0) && c.channels % c.groups == 0
                               : c.channels == call.dim(1, 1) * c.groups && c.outputs % c.groups == 0;
  call.expect(fits, "channels and groups do not fit");
  Shape shape{c.batch, c.outputs};
  for (size_t i = 0; i < count && call.ok(); ++i) {
    const size_t d = 3 - count + i;
    c.in[d] = call.dim(0, 2 + i), c.kernel[d] = call.dim(1, 2 + i);
    c.strides[d] = strides[i], c.dilation[d] = dilation[i], c.more[d] = more[i];
    c.before[d] = padding[i], c.after[d] = padding[count + i];
    call.expect(c.kernel[d] >= 1 && c.kernel[d] <= kMaxAttr, "the kernel is empty or too large");
    if (!call.ok()) return c;
    if (transposed) {
      c.out[d] =
          (c.in[d] - 1) * c.strides[d] + (c.kernel[d] - 1) * c.dilation[d] + 1 + c.more[d] - c.before[d] - c.after[d];
    } else {
      c.out[d] = window_count(c.in[d], c.kernel[d], c.strides[d], c.before[d], c.after[d], c.dilation[d], false);
    }
    call.expect(c.out[d] > 0, transposed ? "the result is empty after padding is removed"
                                         : "the kernel is larger than the padded input");
    shape.push_back(c.out[d]);
  }
  call.expect_size(shape);
  return c;
}

Shape result_shape(const Convolution& c, int rank) {
  Shape shape{c.batch, c.outputs};
  shape.insert(shape.end(), c.out.end() - rank, c.out.end());
  return shape;
}

template <Name op, int rank>
Result convolution(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  const Convolution c = read(call, rank, false);
  if (!call.ok()) return call.fail();
  Tensor out(product_dtype(inputs[0].dtype()), result_shape(c, rank));
  with_arithmetic<kFactors>(inputs[0].dtype(), [&]<class T>(T) {
    convolve<T>(c, inputs[0].data<T>(), inputs[1].data<T>(), out.data<Sum<T>>());
  });
  return std::vector{out};
}

template <Name op, int rank>
Result transposed_convolution(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  const Convolution c = read(call, rank, true);
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), result_shape(c, rank));
  with_arithmetic<kReals>(out.dtype(), [&]<class T>(T) {
    convolve_transposed<T>(c, inputs[0].data<T>(), inputs[1].data<T>(), out.data<T>());
  });
  return std::vector{out};
}

}  // namespace

std::span<const Entry> convolution_kernels() {
  static constexpr Entry kEntries[] = {
      {"conv1d", convolution<"conv1d", 1>},
      {"conv2d", convolution<"conv2d", 2>},
      {"conv3d", convolution<"conv3d", 3>},
      {"conv1d_transpose", transposed_convolution<"conv1d_transpose", 1>},
      {"conv2d_transpose", transposed_convolution<"conv2d_transpose", 2>},
      {"conv3d_transpose", transposed_convolution<"conv3d_transpose", 3>},
  };
  return kEntries;
}

}  // namespace tenon::runtime::reference
