// Convolution and matrix products: for each output pixel the window is gathered into a column, and the column is
// multiplied with all output channels. That is the definition, with the loops in the order that caches like.
#include <algorithm>

#include "runtime/reference/support.h"

namespace tenon::runtime::reference {
namespace {

constexpr int64_t kMaxAttr = 1 << 20;

// sum of a[i] * b[i]. Widening the operands to 16 bits lets compilers use the multiply-add of pairs.
int32_t dot(const int16_t* a, const int16_t* b, int64_t count) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += int32_t{a[i]} * b[i];
  return sum;
}

// Products of int8 are at most 2^14, so up to 2^16 of them cannot overflow; longer sums are taken in parts that wrap.
int32_t wrapping_dot(const int16_t* a, const int16_t* b, int64_t count) {
  constexpr int64_t kPart = 1 << 16;
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; i += kPart) {
    sum += static_cast<uint32_t>(dot(a + i, b + i, std::min(kPart, count - i)));
  }
  return static_cast<int32_t>(sum);
}

// out[m] = sum over k of column[k] * weights[m][k], in the order of k.
void multiply(const std::vector<int16_t>& column, const std::vector<int16_t>& weights, int64_t outputs, int32_t* out) {
  const auto taps = static_cast<int64_t>(column.size());
  for (int64_t m = 0; m < outputs; ++m) out[m] = wrapping_dot(column.data(), weights.data() + m * taps, taps);
}

// As above with the weights transposed, weights[k][m]: vector code keeps the order of the float sums.
void multiply(const std::vector<float>& column, const std::vector<float>& weights, int64_t outputs, float* out) {
  std::fill(out, out + outputs, 0.0f);
  for (size_t k = 0; k < column.size(); ++k) {
    const float x = column[k];
    const float* row = weights.data() + k * outputs;
    for (int64_t m = 0; m < outputs; ++m) out[m] += x * row[m];
  }
}

// [outputs][taps] as `multiply` wants it.
std::vector<int16_t> prepare(std::span<const int8_t> weights, int64_t, int64_t) {
  return {weights.begin(), weights.end()};
}
std::vector<float> prepare(std::span<const float> weights, int64_t outputs, int64_t taps) {
  std::vector<float> transposed(weights.size());
  for (int64_t m = 0; m < outputs; ++m) {
    for (int64_t k = 0; k < taps; ++k) transposed[k * outputs + m] = weights[m * taps + k];
  }
  return transposed;
}

struct Convolution {
  int64_t batch, channels, height, width;  // x
  int64_t outputs, kernel_h, kernel_w;     // w
  int64_t out_h, out_w;
  std::vector<int64_t> strides, padding, dilation;
  int64_t groups, pad_value;
};

template <class In, class Wide, class Out>
void convolve(const Convolution& c, std::span<const In> x, std::span<const In> w, std::span<Out> out) {
  const int64_t group_in = c.channels / c.groups, group_out = c.outputs / c.groups;
  const int64_t taps = group_in * c.kernel_h * c.kernel_w;
  std::vector<Wide> column(taps);
  std::vector<Out> result(group_out);
  for (int64_t g = 0; g < c.groups; ++g) {
    const std::vector<Wide> weights = prepare(w.subspan(g * group_out * taps, group_out * taps), group_out, taps);
    for (int64_t n = 0; n < c.batch; ++n) {
      const In* image = x.data() + (n * c.channels + g * group_in) * c.height * c.width;
      Out* image_out = out.data() + (n * c.outputs + g * group_out) * c.out_h * c.out_w;
      for (int64_t oy = 0; oy < c.out_h; ++oy) {
        for (int64_t ox = 0; ox < c.out_w; ++ox) {
          Wide* next = column.data();
          for (int64_t i = 0; i < group_in; ++i) {
            for (int64_t ky = 0; ky < c.kernel_h; ++ky) {
              const int64_t y = oy * c.strides[0] - c.padding[0] + ky * c.dilation[0];
              const bool row_inside = y >= 0 && y < c.height;
              const In* row = image + (i * c.height + (row_inside ? y : 0)) * c.width;
              for (int64_t kx = 0; kx < c.kernel_w; ++kx) {
                const int64_t column_x = ox * c.strides[1] - c.padding[1] + kx * c.dilation[1];
                const bool inside = row_inside && column_x >= 0 && column_x < c.width;
                *next++ = inside ? static_cast<Wide>(row[column_x]) : static_cast<Wide>(c.pad_value);
              }
            }
          }
          multiply(column, weights, group_out, result.data());
          for (int64_t m = 0; m < group_out; ++m) image_out[m * c.out_h * c.out_w + oy * c.out_w + ox] = result[m];
        }
      }
    }
  }
}

bool is_product(Call& call) {
  call.expect_inputs(2);
  call.expect_dtype(0, {DType::kF32, DType::kI8});
  call.expect(call.ok() && call.input(0).dtype() == call.input(1).dtype(), "both must be f32 or both i8");
  return call.ok() && call.input(0).dtype() == DType::kI8;
}

Result conv2d(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("conv2d", attrs, inputs);
  const bool integer = is_product(call);
  call.expect_rank(0, 4);
  call.expect_rank(1, 4);
  Convolution c{};
  c.strides = call.integers("strides", 2, 1, kMaxAttr);
  c.padding = call.integers("padding", 4, 0, kMaxAttr);
  c.dilation = call.integers("dilation", 2, 1, kMaxAttr);
  c.groups = call.integer("groups", 1, kMaxAttr);
  c.pad_value = call.integer("pad_value", -128, 127);
  if (!call.ok()) return call.fail();
  c.batch = call.dim(0, 0), c.channels = call.dim(0, 1), c.height = call.dim(0, 2), c.width = call.dim(0, 3);
  c.outputs = call.dim(1, 0), c.kernel_h = call.dim(1, 2), c.kernel_w = call.dim(1, 3);
  call.expect(c.channels == call.dim(1, 1) * c.groups && c.outputs % c.groups == 0, "channels and groups do not fit");
  call.expect(c.kernel_h >= 1 && c.kernel_w >= 1 && c.kernel_h <= kMaxAttr && c.kernel_w <= kMaxAttr,
              "the kernel is empty or too large");
  if (!call.ok()) return call.fail();
  c.out_h = window_count(c.height, c.kernel_h, c.strides[0], c.padding[0], c.padding[2], c.dilation[0], false);
  c.out_w = window_count(c.width, c.kernel_w, c.strides[1], c.padding[1], c.padding[3], c.dilation[1], false);
  call.expect(c.out_h > 0 && c.out_w > 0, "the kernel reaches beyond the padded input");
  const Shape shape{c.batch, c.outputs, c.out_h, c.out_w};
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(integer ? DType::kI32 : DType::kF32, shape);
  if (integer) {
    convolve<int8_t, int16_t, int32_t>(c, inputs[0].data<int8_t>(), inputs[1].data<int8_t>(), out.data<int32_t>());
  } else {
    convolve<float, float, float>(c, inputs[0].data<float>(), inputs[1].data<float>(), out.data<float>());
  }
  return std::vector{out};
}

// rows [count][taps] times weights [outputs][taps].
template <class In, class Wide, class Out>
void multiply_rows(std::span<const In> rows, std::span<const In> weights, std::span<Out> out, int64_t taps,
                   int64_t outputs) {
  const std::vector<Wide> prepared = prepare(weights, outputs, taps);
  std::vector<Wide> column(taps);
  const int64_t count = outputs ? static_cast<int64_t>(out.size()) / outputs : 0;
  for (int64_t n = 0; n < count; ++n) {
    std::copy_n(rows.begin() + n * taps, taps, column.begin());
    multiply(column, prepared, outputs, out.data() + n * outputs);
  }
}

Result dense(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("dense", attrs, inputs);
  const bool integer = is_product(call);
  call.expect_rank(0, 2);
  call.expect_rank(1, 2);
  call.expect(call.dim(0, 1) == call.dim(1, 1), "the features differ");
  if (!call.ok()) return call.fail();
  const int64_t taps = call.dim(0, 1), outputs = call.dim(1, 0);
  const Shape shape{call.dim(0, 0), outputs};
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(integer ? DType::kI32 : DType::kF32, shape);
  if (integer) {
    multiply_rows<int8_t, int16_t, int32_t>(inputs[0].data<int8_t>(), inputs[1].data<int8_t>(), out.data<int32_t>(),
                                            taps, outputs);
  } else {
    multiply_rows<float, float, float>(inputs[0].data<float>(), inputs[1].data<float>(), out.data<float>(), taps,
                                       outputs);
  }
  return std::vector{out};
}

template <class In, class Wide, class Out>
void multiply_matrices(const Tensor& a, const Tensor& b, Tensor& out) {
  const size_t rank = out.shape().size();
  const int64_t rows = out.shape()[rank - 2], columns = out.shape()[rank - 1], taps = a.shape().back();
  const int64_t matrices = element_count(std::span(out.shape()).first(rank - 2));
  std::vector<In> transposed(columns * taps);
  for (int64_t matrix = 0; matrix < matrices; ++matrix) {
    // The matrix's index in an operand whose leading dims may be 1 or absent.
    auto index_in = [&](const Shape& shape) {
      int64_t rest = matrix, index = 0, scale = 1;
      for (size_t back = 3; back <= rank; ++back) {
        const int64_t size = out.shape()[rank - back], at = rest % size;
        rest /= size;
        if (back > shape.size()) continue;
        const int64_t own = shape[shape.size() - back];
        index += (own == 1 ? 0 : at) * scale;
        scale *= own;
      }
      return index;
    };
    const auto left = a.data<In>().subspan(index_in(a.shape()) * rows * taps, rows * taps);
    const auto right = b.data<In>().subspan(index_in(b.shape()) * taps * columns, taps * columns);
    for (int64_t k = 0; k < taps; ++k) {
      for (int64_t m = 0; m < columns; ++m) transposed[m * taps + k] = right[k * columns + m];
    }
    multiply_rows<In, Wide, Out>(left, transposed, out.data<Out>().subspan(matrix * rows * columns, rows * columns),
                                 taps, columns);
  }
}

Result matmul(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("matmul", attrs, inputs);
  const bool integer = is_product(call);
  if (!call.ok()) return call.fail();
  const Shape &a = inputs[0].shape(), &b = inputs[1].shape();
  call.expect(a.size() >= 2 && b.size() >= 2, "both must have at least 2 dims");
  if (!call.ok()) return call.fail();
  call.expect(a.back() == b[b.size() - 2], "columns of a and rows of b differ");
  const size_t rank = std::max(a.size(), b.size());
  Shape shape(rank, 1);
  for (size_t back = 3; back <= rank; ++back) {
    const int64_t left = back > a.size() ? 1 : a[a.size() - back], right = back > b.size() ? 1 : b[b.size() - back];
    call.expect(left == right || left == 1 || right == 1, "the leading dims do not broadcast");
    shape[rank - back] = left == 1 ? right : left;
  }
  shape[rank - 2] = a[a.size() - 2];
  shape[rank - 1] = b.back();
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(integer ? DType::kI32 : DType::kF32, shape);
  if (integer) multiply_matrices<int8_t, int16_t, int32_t>(inputs[0], inputs[1], out);
  else multiply_matrices<float, float, float>(inputs[0], inputs[1], out);
  return std::vector{out};
}

}  // namespace

std::span<const Entry> contraction_kernels() {
  static constexpr Entry kEntries[] = {{"conv2d", conv2d}, {"dense", dense}, {"matmul", matmul}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
