// Functions of one element, as the C++ standard library computes them.
#include <cmath>

#include "runtime/reference/map.h"

namespace tenon::runtime::reference {
namespace {

constexpr auto kNegate = [](auto x) {
  if constexpr (std::is_integral_v<decltype(x)>) return static_cast<decltype(x)>(0 - static_cast<uint64_t>(x));
  else return -x;
};

}  // namespace

std::span<const Entry> math_kernels() {
  static constexpr Entry kEntries[] = {
      unary<"abs", kNumericTypes>([](auto x) {
        if constexpr (std::is_floating_point_v<decltype(x)>) return std::abs(x);
        else return x < 0 ? kNegate(x) : x;
      }),
      unary<"negate", kSignedNumericTypes>(kNegate),
      unary<"sign", kNumericTypes>([](auto x) { return x != x ? x : static_cast<decltype(x)>((x > 0) - (x < 0)); }),
      real<"reciprocal">([](auto x) { return 1 / x; }),
      real<"exp">([](auto x) { return std::exp(x); }),
      real<"expm1">([](auto x) { return std::expm1(x); }),
      real<"log">([](auto x) { return std::log(x); }),
      real<"log1p">([](auto x) { return std::log1p(x); }),
      real<"sqrt">([](auto x) { return std::sqrt(x); }),
      real<"rsqrt">([](auto x) { return 1 / std::sqrt(x); }),
      real<"erf">([](auto x) { return std::erf(x); }),
      real<"sin">([](auto x) { return std::sin(x); }),
      real<"cos">([](auto x) { return std::cos(x); }),
      real<"tan">([](auto x) { return std::tan(x); }),
      real<"asin">([](auto x) { return std::asin(x); }),
      real<"acos">([](auto x) { return std::acos(x); }),
      real<"atan">([](auto x) { return std::atan(x); }),
      real<"sinh">([](auto x) { return std::sinh(x); }),
      real<"cosh">([](auto x) { return std::cosh(x); }),
      real<"asinh">([](auto x) { return std::asinh(x); }),
      real<"acosh">([](auto x) { return std::acosh(x); }),
      real<"atanh">([](auto x) { return std::atanh(x); }),
      real<"floor">([](auto x) { return std::floor(x); }),
      real<"ceil">([](auto x) { return std::ceil(x); }),
      real<"round">([](auto x) { return std::nearbyint(x); }),
      real<"trunc">([](auto x) { return std::trunc(x); }),
      real<"is_nan">([](auto x) { return bool(std::isnan(x)); }),
      real<"is_inf">([](auto x) { return bool(std::isinf(x)); }),
      unary<"logical_not", kBoolean>([](bool x) { return !x; }),
      unary<"bitwise_not", kIntegers>([](auto x) { return static_cast<decltype(x)>(~x); }),
  };
  return kEntries;
}

}  // namespace tenon::runtime::reference
