// Copies, casts, selection and biases.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/reference/elements.h"
#include "support/try.h"

namespace tenon::runtime::reference {
namespace {

Result identity(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("identity", attrs, inputs);
  call.expect_inputs(1);
  if (!call.ok()) return call.fail();
  return std::vector{inputs[0]};
}

Result select(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("select", attrs, inputs);
  call.expect_inputs(3);
  call.expect_dtype(0, kBoolean);
  call.expect(call.ok() && inputs[1].dtype() == inputs[2].dtype(), "a and b must have one dtype");
  if (!call.ok()) return call.fail();
  const Shape shape = broadcast_shape(call);
  if (!call.ok()) return call.fail();
  const Tensor condition = broadcast_to(inputs[0], shape), a = broadcast_to(inputs[1], shape),
               b = broadcast_to(inputs[2], shape);
  Tensor out(a.dtype(), shape);
  const auto select_a = condition.data<bool>();
  for (size_t i = 0; i < select_a.size(); ++i) {
    const auto offset = static_cast<int64_t>(i);
    copy_element(select_a[i] ? a : b, offset, out, offset);
  }
  return std::vector{out};
}

Result bias_add(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("bias_add", attrs, inputs);
  call.expect_inputs(2);
  call.expect_dtype(0, kNumericTypes);
  call.expect_one_dtype();
  call.expect_rank(1, 1);
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  call.expect(call.dim(0, axis) == call.dim(1, 0), "the bias has another length");
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), inputs[0].shape());
  const AxisView view = view_axis(inputs[0].shape(), axis);
  with_arithmetic<kNumericTypes>(out.dtype(), [&]<class T>(T) {
    auto from = inputs[0].data<T>(), bias = inputs[1].data<T>();
    auto to = out.data<T>();
    for (int64_t i = 0; i < static_cast<int64_t>(from.size()); ++i) {
      const T b = bias[i / view.inner % view.length];
      if constexpr (std::is_floating_point_v<T>) to[i] = from[i] + b;
      else to[i] = static_cast<T>(static_cast<uint64_t>(from[i]) + static_cast<uint64_t>(b));
    }
  });
  return std::vector{out};
}

template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{};
  } else if constexpr (is_real<From> && std::is_integral_v<To>) {
    if (x != x) return 0;
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

Result cast(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("cast", attrs, inputs);
  call.expect_inputs(1);
  const std::string dtype_name = call.string("dtype");
  if (!call.ok()) return call.fail();
  TENON_TRY_ASSIGN(dtype, parse_dtype(dtype_name));
  Tensor out(*dtype, inputs[0].shape());
  runtime::with_dtype<kAnyDType>(inputs[0].dtype(), [&]<class From>(From) {
    runtime::with_dtype<kAnyDType>(*dtype, [&]<class To>(To) {
      std::ranges::transform(inputs[0].data<From>(), out.data<To>().begin(), convert<To, From>);
    });
  });
  return std::vector{out};
}

}  // namespace

std::span<const Entry> elementwise_kernels() {
  static constexpr Entry kEntries[] = {
      {"identity", identity}, {"cast", Kernel::of_any_dtype(cast)}, {"select", select}, {"bias_add", bias_add}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
