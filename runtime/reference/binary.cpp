// Arithmetic, comparisons and logic of two tensors that broadcast.
#include <cmath>
#include <limits>

#include "runtime/reference/map.h"

namespace tenon::runtime::reference {
namespace {

template <class T>
constexpr bool kIsReal = std::is_floating_point_v<T>;

constexpr auto kDivide = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (kIsReal<T>) return a / b;
  else
    return b == static_cast<T>(-1) && std::is_signed_v<T> ? static_cast<T>(0 - static_cast<uint64_t>(a))
                                                          : static_cast<T>(a / b);
};
constexpr auto kRemainder = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (kIsReal<T>) return std::fmod(a, b);
  else return b == static_cast<T>(-1) && std::is_signed_v<T> ? T{0} : static_cast<T>(a % b);
};

Result power(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("power", attrs, inputs);
  if (inputs.size() == 2 && kSignedIntegers.contains(inputs[1].dtype())) {
    with_arithmetic<kSignedIntegers>(inputs[1].dtype(), [&]<class T>(T) {
      call.expect(std::ranges::all_of(inputs[1].data<T>(), [](T n) { return n >= 0; }),
                  "an integer is raised to a negative power");
    });
    if (!call.ok()) return call.fail();
  }
  return zip_elements<"power", kNumericTypes>(attrs, inputs, [](auto a, auto b) {
    if constexpr (kIsReal<decltype(a)>) return std::pow(a, b);
    uint64_t result = 1, base = static_cast<uint64_t>(a);
    for (auto n = static_cast<uint64_t>(b); n > 0; n /= 2, base *= base) {
      if (n % 2 == 1) result *= base;
    }
    return static_cast<decltype(a)>(result);
  });
}

template <Name op, class F>
Result shift_elements(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  if (inputs.size() == 2 && kIntegers.contains(inputs[1].dtype())) {
    with_arithmetic<kIntegers>(inputs[1].dtype(), [&]<class T>(T) {
      call.expect(std::ranges::all_of(inputs[1].data<T>(), [](T n) { return n >= 0; }), "a shift is negative");
    });
    if (!call.ok()) return call.fail();
  }
  return zip_elements<op, kIntegers>(attrs, inputs, F{});
}
template <Name op, class F>
constexpr Entry shift(F) {
  return {op.view(), shift_elements<op, F>};
}

}  // namespace

std::span<const Entry> binary_kernels() {
  static constexpr Entry kEntries[] = {
      binary<"add", kNumericTypes>([](auto a, auto b) {
        if constexpr (kIsReal<decltype(a)>) return a + b;
        else return static_cast<decltype(a)>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      }),
      binary<"subtract", kNumericTypes>([](auto a, auto b) {
        if constexpr (kIsReal<decltype(a)>) return a - b;
        else return static_cast<decltype(a)>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
      }),
      binary<"multiply", kNumericTypes>([](auto a, auto b) {
        if constexpr (kIsReal<decltype(a)>) return a * b;
        else return static_cast<decltype(a)>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      }),
      division<"divide", kNumericTypes>(kDivide),
      division<"floor_divide", kNumericTypes>([](auto a, auto b) {
        if constexpr (kIsReal<decltype(a)>) return std::floor(a / b);
        else return static_cast<decltype(a)>(kDivide(a, b) - (kRemainder(a, b) != 0 && (a < 0) != (b < 0)));
      }),
      division<"remainder", kNumericTypes>(kRemainder),
      division<"modulo", kNumericTypes>([](auto a, auto b) {
        const auto remainder = kRemainder(a, b);
        return static_cast<decltype(a)>(remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder);
      }),
      {"power", power},
      binary<"maximum", kNumericTypes>([](auto a, auto b) { return a > b || a != a ? a : b; }),
      binary<"minimum", kNumericTypes>([](auto a, auto b) { return a < b || a != a ? a : b; }),
      binary<"equal", kAnyDType>([](auto a, auto b) { return a == b; }),
      binary<"not_equal", kAnyDType>([](auto a, auto b) { return a != b; }),
      binary<"less", kNumericTypes>([](auto a, auto b) { return a < b; }),
      binary<"less_equal", kNumericTypes>([](auto a, auto b) { return a <= b; }),
      binary<"greater", kNumericTypes>([](auto a, auto b) { return a > b; }),
      binary<"greater_equal", kNumericTypes>([](auto a, auto b) { return a >= b; }),
      binary<"logical_and", kBoolean>([](bool a, bool b) { return a && b; }),
      binary<"logical_or", kBoolean>([](bool a, bool b) { return a || b; }),
      binary<"logical_xor", kBoolean>([](bool a, bool b) { return a != b; }),
      binary<"bitwise_and", kIntegers>([](auto a, auto b) { return static_cast<decltype(a)>(a & b); }),
      binary<"bitwise_or", kIntegers>([](auto a, auto b) { return static_cast<decltype(a)>(a | b); }),
      binary<"bitwise_xor", kIntegers>([](auto a, auto b) { return static_cast<decltype(a)>(a ^ b); }),
      shift<"shift_left">([](auto a, auto b) {
        const auto n = static_cast<uint64_t>(b);
        return static_cast<decltype(a)>(n < 64 ? static_cast<uint64_t>(a) << n : 0);
      }),
      shift<"shift_right">([](auto a, auto b) {
        constexpr auto kLast = static_cast<uint64_t>(8 * sizeof(a) - 1);
        const auto n = static_cast<uint64_t>(b);
        return static_cast<decltype(a)>(n > kLast && a >= 0 ? 0 : a >> std::min(n, kLast));
      }),
  };
  return kEntries;
}

}  // namespace tenon::runtime::reference
