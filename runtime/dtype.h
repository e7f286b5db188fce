// The dtypes of elements: their C++ types, sets of dtypes, and the dispatch from a dtype to the C++ type.
//
// Semantics: integers are two's complement. f16 is IEEE 754 binary16 and bf16 the upper half of binary32; both are
// types of storage, whose values are computed with in f32 and rounded to the nearest, halves to even, once a result is
// stored.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "support/diagnostic.h"

namespace tenon::runtime {

// The ids of dtypes in files and in the C interface of native kernels (runtime/native/kernel.h): new ones are appended.
enum class DType : uint8_t { kBool, kI8, kU8, kI16, kU16, kI32, kI64, kF32, kF64, kU32, kU64, kF16, kBF16 };
inline constexpr size_t kDTypeCount = 13;

std::string_view name(DType dtype);  // "bool", "i8", ..., "f64", "bf16"
int bytes(DType dtype);
Expected<DType> parse_dtype(std::string_view text);
// Every dtype, by width within its kind.
std::span<const DType> all_dtypes();

// A float of 16 bits with `fraction_bits` explicit bits of the significand, as its bits.
template <int fraction_bits>
struct ShortFloat {
  uint16_t bits = 0;

  ShortFloat() = default;
  // Rounds once, to the nearest, halves to even; beyond the range to infinity. A NaN remains a NaN.
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit ShortFloat(T value) {
    if constexpr (std::is_same_v<T, float>) bits = round(value);
    else if constexpr (std::is_integral_v<T>) bits = round(to_odd(value));
    else bits = round(static_cast<double>(value));
  }
  template <int other>
  requires(other != fraction_bits) explicit ShortFloat(ShortFloat<other> value)
      : ShortFloat(static_cast<float>(value)) {}
  // Exact in float and double; integers truncate.
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit operator T() const { return static_cast<T>(value()); }
  static ShortFloat of_bits(uint16_t bits) {
    ShortFloat x;
    x.bits = bits;
    return x;
  }

  // As floats: -0 equals 0, and a NaN equals nothing.
  friend bool operator==(ShortFloat a, ShortFloat b) { return a.value() == b.value(); }
  friend std::partial_ordering operator<=>(ShortFloat a, ShortFloat b) { return a.value() <=> b.value(); }

 private:
  float value() const;
  static uint16_t round(double value);
  static uint16_t round(float value);
  // An integer as a double that is rounded to odd, so that rounding it again is the same as rounding the integer.
  template <class T>
  static double to_odd(T value) {
    const bool negative = value < T{0};
    uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    if (const int excess = std::bit_width(magnitude) - 53; excess > 0) {
      const uint64_t lost = magnitude & ((uint64_t{1} << excess) - 1);
      magnitude = (magnitude >> excess | (lost != 0 ? 1 : 0)) << excess;
    }
    return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
  }
};
using Half = ShortFloat<10>;
using BFloat16 = ShortFloat<7>;
extern template struct ShortFloat<10>;
extern template struct ShortFloat<7>;

// Whether T is a type of real numbers, with or without arithmetic of its own.
template <class T>
inline constexpr bool is_real = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class T>
inline constexpr DType dtype_of = [] {
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  else if constexpr (std::is_same_v<T, int8_t>) return DType::kI8;
  else if constexpr (std::is_same_v<T, uint8_t>) return DType::kU8;
  else if constexpr (std::is_same_v<T, int16_t>) return DType::kI16;
  else if constexpr (std::is_same_v<T, uint16_t>) return DType::kU16;
  else if constexpr (std::is_same_v<T, int32_t>) return DType::kI32;
  else if constexpr (std::is_same_v<T, uint32_t>) return DType::kU32;
  else if constexpr (std::is_same_v<T, int64_t>) return DType::kI64;
  else if constexpr (std::is_same_v<T, uint64_t>) return DType::kU64;
  else if constexpr (std::is_same_v<T, Half>) return DType::kF16;
  else if constexpr (std::is_same_v<T, BFloat16>) return DType::kBF16;
  else if constexpr (std::is_same_v<T, float>) return DType::kF32;
  else return DType::kF64;
}();

// A set of dtypes.
struct DTypes {
  uint16_t bits = 0;  // public, so that a set can be a template's argument

  constexpr DTypes(std::initializer_list<DType> list) {  // NOLINT: a list is a set
    for (DType dtype : list) bits |= bit(dtype);
  }
  constexpr bool contains(DType dtype) const { return (bits & bit(dtype)) != 0; }
  constexpr DTypes operator|(DTypes other) const { return DTypes(static_cast<uint16_t>(bits | other.bits)); }
  constexpr DTypes without(DTypes other) const { return DTypes(static_cast<uint16_t>(bits & ~other.bits)); }
  constexpr bool operator==(const DTypes&) const = default;
  // "f32 or f64"
  std::string str() const;

  constexpr explicit DTypes(uint16_t bits) : bits(bits) {}
  static constexpr uint16_t bit(DType dtype) { return static_cast<uint16_t>(1u << static_cast<unsigned>(dtype)); }
};

inline constexpr DTypes kBoolean{DType::kBool}, kIndices{DType::kI32, DType::kI64};
inline constexpr DTypes kShortFloats{DType::kF16, DType::kBF16};
inline constexpr DTypes kReals = DTypes{DType::kF32, DType::kF64} | kShortFloats;
inline constexpr DTypes kSignedIntegers{DType::kI8, DType::kI16, DType::kI32, DType::kI64};
inline constexpr DTypes kUnsignedIntegers{DType::kU8, DType::kU16, DType::kU32, DType::kU64};
inline constexpr DTypes kIntegers = kSignedIntegers | kUnsignedIntegers;
inline constexpr DTypes kNumericTypes = kIntegers | kReals, kSignedNumericTypes = kSignedIntegers | kReals;
inline constexpr DTypes kAnyDType = kNumericTypes | kBoolean;

namespace detail {

// The result of visit(T{}) for a T of `allowed`.
template <DTypes allowed, class F>
auto result_of_visit() {
  if constexpr (allowed.contains(DType::kF32)) return std::type_identity<std::invoke_result_t<F&, float>>{};
  else if constexpr (allowed.contains(DType::kI64)) return std::type_identity<std::invoke_result_t<F&, int64_t>>{};
  else if constexpr (allowed.contains(DType::kU64)) return std::type_identity<std::invoke_result_t<F&, uint64_t>>{};
  else if constexpr (allowed.contains(DType::kI8)) return std::type_identity<std::invoke_result_t<F&, int8_t>>{};
  else return std::type_identity<std::invoke_result_t<F&, bool>>{};
}

}  // namespace detail

// visit(T{}) for the C++ type of `dtype`, which must be one of `allowed`: `visit` is compiled for these only. Returns
// what `visit` returns.
template <DTypes allowed, class F>
auto with_dtype(DType dtype, F&& visit) {
  using Returned = typename decltype(detail::result_of_visit<allowed, std::remove_reference_t<F>>())::type;
  auto call = [&]<class T>(T) -> Returned {
    if constexpr (allowed.contains(dtype_of<T>)) return visit(T{});
    else std::unreachable();
  };
  switch (dtype) {
    case DType::kBool: return call(bool{});
    case DType::kI8: return call(int8_t{});
    case DType::kU8: return call(uint8_t{});
    case DType::kI16: return call(int16_t{});
    case DType::kU16: return call(uint16_t{});
    case DType::kI32: return call(int32_t{});
    case DType::kU32: return call(uint32_t{});
    case DType::kI64: return call(int64_t{});
    case DType::kU64: return call(uint64_t{});
    case DType::kF16: return call(Half{});
    case DType::kBF16: return call(BFloat16{});
    case DType::kF32: return call(float{});
    case DType::kF64: return call(double{});
  }
  std::unreachable();
}

}  // namespace tenon::runtime
