// Elementwise kernels, made from a function of elements.
//
// Integers wrap: functions of integers compute in uint64_t, or in a type that holds the result.
#pragma once

#include <array>

#include "runtime/reference/elements.h"

namespace tenon::runtime::reference {

// f(x, attribute...) for each element; the attributes are floats, converted to the type of x. The result has dtype bool
// if f returns bool, else that of x.
template <Name op, DTypes allowed, Name... attrs, class F>
Result map_elements(const Attrs& given, std::span<const Tensor> inputs, F f) {
  Call call(op.view(), given, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, allowed);
  const std::array<double, sizeof...(attrs)> values{call.real(attrs.view())...};
  if (!call.ok()) return call.fail();
  Tensor out;
  with_arithmetic<allowed>(inputs[0].dtype(), [&]<class T>(T) {
    auto apply = [&](T x) { return std::apply([&](auto... value) { return f(x, static_cast<T>(value)...); }, values); };
    using Out = std::conditional_t<std::is_same_v<decltype(apply(T{})), bool>, bool, T>;
    out = Tensor(dtype_of<Out>, inputs[0].shape());
    std::ranges::transform(inputs[0].data<T>(), out.data<Out>().begin(),
                           [&](T x) { return static_cast<Out>(apply(x)); });
  });
  return std::vector{out};
}

// f(a, b) for each pair of elements, the inputs broadcast to one shape.
template <Name op, DTypes allowed, bool divides = false, class F>
Result zip_elements(const Attrs& attrs, std::span<const Tensor> inputs, F f) {
  Call call(op.view(), attrs, inputs);
  call.expect_inputs(2);
  call.expect_dtype(0, allowed);
  call.expect_one_dtype();
  if (!call.ok()) return call.fail();
  const Shape shape = broadcast_shape(call);
  if (!call.ok()) return call.fail();
  const Tensor a = broadcast_to(inputs[0], shape), b = broadcast_to(inputs[1], shape);
  Tensor out;
  with_arithmetic<allowed>(a.dtype(), [&]<class T>(T) {
    if constexpr (divides && std::is_integral_v<T>) {
      call.expect(std::ranges::find(b.data<T>(), T{0}) == b.data<T>().end(), "division by zero");
      if (!call.ok()) return;
    }
    using Out = std::conditional_t<std::is_same_v<decltype(f(T{}, T{})), bool>, bool, T>;
    out = Tensor(dtype_of<Out>, shape);
    std::ranges::transform(a.data<T>(), b.data<T>(), out.data<Out>().begin(),
                           [&](T x, T y) { return static_cast<Out>(f(x, y)); });
  });
  if (!call.ok()) return call.fail();
  return std::vector{out};
}

// Table entries of both kinds; F captures nothing.
template <Name op, DTypes allowed, Name... attrs, class F>
constexpr Entry unary(F) {
  return {op.view(), [](const Attrs& given, std::span<const Tensor> inputs) {
            return map_elements<op, allowed, attrs...>(given, inputs, F{});
          }};
}
template <Name op, Name... attrs, class F>
constexpr Entry real(F f) {
  return unary<op, kReals, attrs...>(f);
}
template <Name op, DTypes allowed, bool divides = false, class F>
constexpr Entry binary(F) {
  return {op.view(), [](const Attrs& attrs, std::span<const Tensor> inputs) {
            return zip_elements<op, allowed, divides>(attrs, inputs, F{});
          }};
}
// Integers are not divided by zero.
template <Name op, DTypes allowed, class F>
constexpr Entry division(F f) {
  return binary<op, allowed, true>(f);
}

}  // namespace tenon::runtime::reference
