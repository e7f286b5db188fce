// Copies, casts, selection and biases.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/reference/elements.h"
#include "support/try.h"

namespace tenon::runtime::reference {
namespace {

Result copied(std::string_view name, const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(name, attrs, inputs);
  call.expect_inputs(1);
  if (!call.ok()) return call.fail();
  return std::vector{inputs[0]};
}

Result identity(const Attrs& attrs, std::span<const Tensor> inputs) { return copied("identity", attrs, inputs); }
Result stop_gradient(const Attrs& attrs, std::span<const Tensor> inputs) {
  return copied("stop_gradient", attrs, inputs);
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

// How a cast to a float of 8 bits or less treats values beyond its range or between its values.
struct Narrowing {
  bool saturate = true;
  enum class Rounding : uint8_t { kNearest, kUp, kDown } rounding = Rounding::kNearest;
};

// The power of two above or below a positive value that is none.
double power_of_two(double value, Narrowing::Rounding rounding) {
  if (rounding == Narrowing::Rounding::kNearest || !(value > 0) || !std::isfinite(value)) return value;
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);  // in [0.5, 1)
  return std::ldexp(0.5, exponent + (rounding == Narrowing::Rounding::kUp && mantissa > 0.5 ? 1 : 0));
}

template <class To, class From>
To narrowed(From x, const Narrowing& how) {
  if constexpr (is_real<To>) {
    auto value = static_cast<double>(x);
    if constexpr (!To::format.has_sign) value = power_of_two(value, how.rounding);
    if (how.saturate && value > To::format.max()) value = To::format.max();
    if (how.saturate && To::format.has_sign && value < To::format.min()) value = To::format.min();
    return To(value);
  } else {
    return To(static_cast<Wide<From>>(x));
  }
}

template <class To, class From>
To convert(From x, const Narrowing& how) {
  if constexpr (is_narrow<To>) {
    return narrowed<To>(x, how);
  } else if constexpr (std::is_same_v<To, bool>) {
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
  const std::string dtype_name = call.string("dtype"), rounding = call.string("rounding");
  Narrowing how{.saturate = call.integer("saturate", 0, 1) == 1};
  call.expect(rounding == "nearest" || rounding == "up" || rounding == "down", "rounding must be nearest, up or down");
  if (rounding != "nearest") how.rounding = rounding == "up" ? Narrowing::Rounding::kUp : Narrowing::Rounding::kDown;
  if (!call.ok()) return call.fail();
  TENON_TRY_ASSIGN(dtype, parse_dtype(dtype_name));
  Tensor out(*dtype, inputs[0].shape());
  constexpr DTypes kNarrow = kNarrowFloats | kNarrowIntegers;
  const Tensor x = kNarrow.contains(inputs[0].dtype()) ? widened(inputs[0]) : inputs[0];
  runtime::with_dtype<kAnyDType.without(kNarrow)>(x.dtype(), [&]<class From>(From) {
    runtime::with_dtype<kAnyDType>(*dtype, [&]<class To>(To) {
      std::ranges::transform(x.data<From>(), out.data<To>().begin(), [&](From e) { return convert<To>(e, how); });
    });
  });
  return std::vector{out};
}

// The bits of x as elements of another dtype of the same width.
Result bitcast(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("bitcast", attrs, inputs);
  call.expect_inputs(1);
  const std::string dtype_name = call.string("dtype");
  if (!call.ok()) return call.fail();
  TENON_TRY_ASSIGN(dtype, parse_dtype(dtype_name));
  call.expect(bits(*dtype) == bits(inputs[0].dtype()), "the dtypes must have the same width");
  if (!call.ok()) return call.fail();
  Tensor out(*dtype, inputs[0].shape());
  std::ranges::copy(inputs[0].bytes(), out.bytes().begin());
  return std::vector{out};
}

}  // namespace

std::span<const Entry> elementwise_kernels() {
  static constexpr Entry kEntries[] = {{"identity", identity},
                                       {"stop_gradient", stop_gradient},
                                       {"bitcast", Kernel::of_any_dtype(bitcast)},
                                       {"cast", Kernel::of_any_dtype(cast)},
                                       {"select", select},
                                       {"bias_add", bias_add}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
