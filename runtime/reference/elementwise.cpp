// One element at a time.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/reference/support.h"

namespace tenon::runtime::reference {
namespace {

template <class F>
Result map_float(std::string_view op, const Attrs& attrs, std::span<const Tensor> inputs, F&& f) {
  Call call(op, attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, {DType::kF32});
  if (!call.ok()) return call.fail();
  Tensor out(DType::kF32, inputs[0].shape());
  std::ranges::transform(inputs[0].data<float>(), out.data<float>().begin(), f);
  return std::vector{out};
}

Result sigmoid(const Attrs& attrs, std::span<const Tensor> inputs) {
  return map_float("sigmoid", attrs, inputs, [](float x) { return 1.0f / (1.0f + std::exp(-x)); });
}
Result tanh(const Attrs& attrs, std::span<const Tensor> inputs) {
  return map_float("tanh", attrs, inputs, [](float x) { return std::tanh(x); });
}

Result identity(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("identity", attrs, inputs);
  call.expect_inputs(1);
  if (!call.ok()) return call.fail();
  return std::vector{inputs[0]};
}

template <class T>
void clamp_all(const Tensor& in, Tensor& out, double lo, double hi) {
  // Bounds are rounded into the range of T: towards each other for integers, so that no result leaves [lo, hi].
  T low, high;
  if constexpr (std::is_integral_v<T>) {
    constexpr double kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
    low = static_cast<T>(std::clamp(std::ceil(lo), kMin, kMax));
    high = static_cast<T>(std::clamp(std::floor(hi), kMin, kMax));
  } else {
    low = static_cast<T>(lo), high = static_cast<T>(hi);
  }
  std::ranges::transform(in.data<T>(), out.data<T>().begin(), [=](T x) { return std::min(std::max(x, low), high); });
}

Result clamp_between(Call& call, std::span<const Tensor> inputs, double lo, double hi) {
  call.expect_inputs(1);
  call.expect_dtype(0, {DType::kF32, DType::kI32, DType::kI8});
  call.expect(lo <= hi, "min is above max");
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), inputs[0].shape());
  switch (inputs[0].dtype()) {
    case DType::kI8: clamp_all<int8_t>(inputs[0], out, lo, hi); break;
    case DType::kI32: clamp_all<int32_t>(inputs[0], out, lo, hi); break;
    default: clamp_all<float>(inputs[0], out, lo, hi); break;
  }
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

// For each element of `shape` the index into an operand that broadcasts to it.
template <class F>
void for_each_broadcast(const Shape& shape, const Shape& a, const Shape& b, F&& visit) {
  const size_t rank = shape.size();
  auto strides_of = [&](const Shape& own) {
    std::vector<int64_t> strides(rank, 0);
    int64_t step = 1;
    for (size_t back = 1; back <= own.size(); ++back) {
      const int64_t size = own[own.size() - back];
      strides[rank - back] = size == 1 ? 0 : step;
      step *= size;
    }
    return strides;
  };
  const std::vector<int64_t> stride_a = strides_of(a), stride_b = strides_of(b);
  std::vector<int64_t> at(rank, 0);
  const int64_t count = element_count(shape);
  int64_t index_a = 0, index_b = 0;
  for (int64_t i = 0; i < count; ++i) {
    visit(i, index_a, index_b);
    for (size_t d = rank; d-- > 0;) {
      index_a += stride_a[d], index_b += stride_b[d];
      if (++at[d] < shape[d]) break;
      index_a -= stride_a[d] * shape[d], index_b -= stride_b[d] * shape[d];
      at[d] = 0;
    }
  }
}

enum class Arithmetic { kAdd, kSubtract, kMultiply, kDivide };

template <class T>
T combine(Arithmetic op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case Arithmetic::kAdd: return a + b;
      case Arithmetic::kSubtract: return a - b;
      case Arithmetic::kMultiply: return a * b;
      case Arithmetic::kDivide: return a / b;
    }
  } else {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);  // wraps without overflow
    switch (op) {
      case Arithmetic::kAdd: return static_cast<T>(x + y);
      case Arithmetic::kSubtract: return static_cast<T>(x - y);
      case Arithmetic::kMultiply: return static_cast<T>(x * y);
      case Arithmetic::kDivide: return b == -1 ? static_cast<T>(0 - x) : static_cast<T>(a / b);
    }
  }
  return T{};
}

template <class T>
void combine_all(Arithmetic op, const Tensor& a, const Tensor& b, Tensor& out) {
  auto x = a.data<T>(), y = b.data<T>();
  auto z = out.data<T>();
  for_each_broadcast(out.shape(), a.shape(), b.shape(),
                     [&](int64_t i, int64_t index_a, int64_t index_b) { z[i] = combine(op, x[index_a], y[index_b]); });
}

template <class T>
bool has_zero(const Tensor& tensor) {
  return std::ranges::find(tensor.data<T>(), T{0}) != tensor.data<T>().end();
}

Result arithmetic(std::string_view name, Arithmetic op, const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(name, attrs, inputs);
  call.expect_inputs(2);
  call.expect_dtype(0, {DType::kF32, DType::kI32, DType::kI64, DType::kI8});
  call.expect(call.ok() && inputs[0].dtype() == inputs[1].dtype(), "both must have one dtype");
  if (!call.ok()) return call.fail();
  const Shape &a = inputs[0].shape(), &b = inputs[1].shape();
  Shape shape(std::max(a.size(), b.size()), 1);
  for (size_t back = 1; back <= shape.size(); ++back) {
    const int64_t left = back > a.size() ? 1 : a[a.size() - back], right = back > b.size() ? 1 : b[b.size() - back];
    call.expect(left == right || left == 1 || right == 1, "the shapes do not broadcast");
    shape[shape.size() - back] = left == 1 ? right : left;
  }
  call.expect_size(shape);
  const DType dtype = inputs[0].dtype();
  if (op == Arithmetic::kDivide && dtype != DType::kF32) {
    const bool zero = dtype == DType::kI8    ? has_zero<int8_t>(inputs[1])
                      : dtype == DType::kI32 ? has_zero<int32_t>(inputs[1])
                                             : has_zero<int64_t>(inputs[1]);
    call.expect(!zero, "division by zero");
  }
  if (!call.ok()) return call.fail();
  Tensor out(dtype, shape);
  switch (dtype) {
    case DType::kI8: combine_all<int8_t>(op, inputs[0], inputs[1], out); break;
    case DType::kI32: combine_all<int32_t>(op, inputs[0], inputs[1], out); break;
    case DType::kI64: combine_all<int64_t>(op, inputs[0], inputs[1], out); break;
    default: combine_all<float>(op, inputs[0], inputs[1], out); break;
  }
  return std::vector{out};
}

Result add(const Attrs& attrs, std::span<const Tensor> inputs) {
  return arithmetic("add", Arithmetic::kAdd, attrs, inputs);
}
Result subtract(const Attrs& attrs, std::span<const Tensor> inputs) {
  return arithmetic("subtract", Arithmetic::kSubtract, attrs, inputs);
}
Result multiply(const Attrs& attrs, std::span<const Tensor> inputs) {
  return arithmetic("multiply", Arithmetic::kMultiply, attrs, inputs);
}
Result divide(const Attrs& attrs, std::span<const Tensor> inputs) {
  return arithmetic("divide", Arithmetic::kDivide, attrs, inputs);
}

template <class T>
void add_bias(const Tensor& x, const Tensor& b, Tensor& out, const AxisView& view) {
  auto from = x.data<T>(), bias = b.data<T>();
  auto to = out.data<T>();
  for (int64_t i = 0; i < static_cast<int64_t>(from.size()); ++i) {
    to[i] = combine(Arithmetic::kAdd, from[i], bias[i / view.inner % view.length]);
  }
}

Result bias_add(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("bias_add", attrs, inputs);
  call.expect_inputs(2);
  call.expect_dtype(0, {DType::kF32, DType::kI32});
  call.expect(call.ok() && inputs[0].dtype() == inputs[1].dtype(), "both must have one dtype");
  call.expect_rank(1, 1);
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  call.expect(call.dim(0, axis) == call.dim(1, 0), "the bias has another length");
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), inputs[0].shape());
  const AxisView view = view_axis(inputs[0].shape(), axis);
  if (out.dtype() == DType::kF32) add_bias<float>(inputs[0], inputs[1], out, view);
  else add_bias<int32_t>(inputs[0], inputs[1], out, view);
  return std::vector{out};
}

Result batch_norm(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("batch_norm", attrs, inputs);
  call.expect_inputs(5);
  for (size_t i = 0; i < 5; ++i) call.expect_dtype(i, {DType::kF32});
  for (size_t i = 1; i < 5; ++i) {
    call.expect_rank(i, 1);
    call.expect(call.dim(i, 0) == call.dim(0, 1), "a parameter's length is not the number of channels");
  }
  const double epsilon = call.real("epsilon");
  call.expect(call.input(0).shape().size() >= 2, "needs at least 2 dims");
  if (!call.ok()) return call.fail();
  Tensor out(DType::kF32, inputs[0].shape());
  const AxisView view = view_axis(inputs[0].shape(), 1);
  auto x = inputs[0].data<float>(), gamma = inputs[1].data<float>(), beta = inputs[2].data<float>(),
       mean = inputs[3].data<float>(), variance = inputs[4].data<float>();
  auto y = out.data<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t c = static_cast<int64_t>(i) / view.inner % view.length;
    y[i] = gamma[c] * (x[i] - mean[c]) / std::sqrt(variance[c] + static_cast<float>(epsilon)) + beta[c];
  }
  return std::vector{out};
}

template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(x)) return 0;
    // 2^n of the range's upper end is exact in every float type.
    const double value = std::trunc(static_cast<double>(x));
    constexpr double kMin = static_cast<double>(std::numeric_limits<To>::min());
    const double end = std::ldexp(1.0, std::numeric_limits<To>::digits);
    if (value < kMin) return std::numeric_limits<To>::min();
    return value >= end ? std::numeric_limits<To>::max() : static_cast<To>(value);
  } else {
    return static_cast<To>(x);
  }
}

template <class F>
void with_dtype(DType dtype, F&& visit) {
  switch (dtype) {
    case DType::kBool: visit(bool{}); break;
    case DType::kI8: visit(int8_t{}); break;
    case DType::kU8: visit(uint8_t{}); break;
    case DType::kI16: visit(int16_t{}); break;
    case DType::kU16: visit(uint16_t{}); break;
    case DType::kI32: visit(int32_t{}); break;
    case DType::kI64: visit(int64_t{}); break;
    case DType::kF32: visit(float{}); break;
    case DType::kF64: visit(double{}); break;
  }
}

Result cast(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("cast", attrs, inputs);
  call.expect_inputs(1);
  auto dtype = parse_dtype(call.string("dtype"));
  if (!call.ok()) return call.fail();
  if (!dtype) return forward_error(dtype);
  Tensor out(*dtype, inputs[0].shape());
  with_dtype(inputs[0].dtype(), [&]<class From>(From) {
    with_dtype(*dtype, [&]<class To>(To) {
      std::ranges::transform(inputs[0].data<From>(), out.data<To>().begin(), convert<To, From>);
    });
  });
  return std::vector{out};
}

}  // namespace

std::span<const Entry> elementwise_kernels() {
  static constexpr Entry kEntries[] = {{"identity", identity},
                                       {"relu", relu},
                                       {"clip", clip},
                                       {"sigmoid", sigmoid},
                                       {"tanh", tanh},
                                       {"add", add},
                                       {"subtract", subtract},
                                       {"multiply", multiply},
                                       {"divide", divide},
                                       {"bias_add", bias_add},
                                       {"batch_norm", batch_norm},
                                       {"cast", cast}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
