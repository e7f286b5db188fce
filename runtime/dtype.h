// The dtypes of elements: their C++ types, sets of dtypes, and the dispatch from a dtype to the C++ type.
//
// Semantics: integers are two's complement. f16 is IEEE 754 binary16 and bf16 the upper half of binary32; both are
// types of storage, whose values are computed with in f32 and rounded to the nearest, halves to even, once a result is
// stored. runtime/narrow.h defines the types of less than a byte and the floats of 8 bits, which are types of storage
// too.
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

#include "runtime/narrow.h"
#include "support/diagnostic.h"

namespace tenon::runtime {

// The ids of dtypes in files and in the C interface of native kernels (runtime/native/kernel.h): new ones are appended.
enum class DType : uint8_t {
  kBool,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kI64,
  kF32,
  kF64,
  kU32,
  kU64,
  kF16,
  kBF16,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0,
  kF4E2M1,
  kI4,
  kU4,
  kI2,
  kU2
};
inline constexpr size_t kDTypeCount = 23;

std::string_view name(DType dtype);  // "bool", "i8", ..., "f64", "bf16"
int bytes(DType dtype);              // of an element in memory
int bits(DType dtype);               // of an element where elements are packed, as in ONNX files
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

template <class T>
inline constexpr bool is_short_float = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// Whether T is a type of real numbers, with or without arithmetic of its own.
template <class T>
inline constexpr bool is_real = [] {
  if constexpr (is_narrow<T>) return !T::format.is_integer();
  else return std::is_floating_point_v<T> || is_short_float<T>;
}();

namespace detail {

template <class T>
auto wide_type() {
  if constexpr (is_narrow<T>) return typename T::Wide{};
  else if constexpr (is_short_float<T>) return float{};
  else return T{};
}

}  // namespace detail

// The type that elements of type T are computed with: T itself, unless it is a type of storage.
template <class T>
using Wide = decltype(detail::wide_type<T>());

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
  else if constexpr (std::is_same_v<T, F8E4M3FN>) return DType::kF8E4M3FN;
  else if constexpr (std::is_same_v<T, F8E4M3FNUZ>) return DType::kF8E4M3FNUZ;
  else if constexpr (std::is_same_v<T, F8E5M2>) return DType::kF8E5M2;
  else if constexpr (std::is_same_v<T, F8E5M2FNUZ>) return DType::kF8E5M2FNUZ;
  else if constexpr (std::is_same_v<T, F8E8M0>) return DType::kF8E8M0;
  else if constexpr (std::is_same_v<T, F4E2M1>) return DType::kF4E2M1;
  else if constexpr (std::is_same_v<T, I4>) return DType::kI4;
  else if constexpr (std::is_same_v<T, U4>) return DType::kU4;
  else if constexpr (std::is_same_v<T, I2>) return DType::kI2;
  else if constexpr (std::is_same_v<T, U2>) return DType::kU2;
  else return DType::kF64;
}();

// A set of dtypes.
struct DTypes {
  uint32_t bits = 0;  // public, so that a set can be a template's argument

  constexpr DTypes(std::initializer_list<DType> list) {  // NOLINT: a list is a set
    for (DType dtype : list) bits |= bit(dtype);
  }
  constexpr bool contains(DType dtype) const { return (bits & bit(dtype)) != 0; }
  constexpr DTypes operator|(DTypes other) const { return DTypes(bits | other.bits); }
  constexpr DTypes without(DTypes other) const { return DTypes(bits & ~other.bits); }
  constexpr bool operator==(const DTypes&) const = default;
  // "f32 or f64"
  std::string str() const;

  constexpr explicit DTypes(uint32_t bits) : bits(bits) {}
  static constexpr uint32_t bit(DType dtype) { return 1u << static_cast<unsigned>(dtype); }
};

inline constexpr DTypes kBoolean{DType::kBool}, kIndices{DType::kI32, DType::kI64};
inline constexpr DTypes kShortFloats{DType::kF16, DType::kBF16};
inline constexpr DTypes kReals = DTypes{DType::kF32, DType::kF64} | kShortFloats;
inline constexpr DTypes kSignedIntegers{DType::kI8, DType::kI16, DType::kI32, DType::kI64};
inline constexpr DTypes kUnsignedIntegers{DType::kU8, DType::kU16, DType::kU32, DType::kU64};
inline constexpr DTypes kIntegers = kSignedIntegers | kUnsignedIntegers;
inline constexpr DTypes kNumericTypes = kIntegers | kReals, kSignedNumericTypes = kSignedIntegers | kReals;
inline constexpr DTypes kNarrowFloats{DType::kF8E4M3FN,   DType::kF8E4M3FNUZ, DType::kF8E5M2,
                                      DType::kF8E5M2FNUZ, DType::kF8E8M0,     DType::kF4E2M1};
inline constexpr DTypes kNarrowIntegers{DType::kI4, DType::kU4, DType::kI2, DType::kU2};
// The types of storage, whose values are computed with in a wider type.
inline constexpr DTypes kStorageTypes = kShortFloats | kNarrowFloats | kNarrowIntegers;
inline constexpr DTypes kAnyDType = kNumericTypes | kBoolean | kStorageTypes;

namespace detail {

// The result of visit(T{}) for a T of `allowed`.
template <DTypes allowed, class F>
auto result_of_visit() {
  if constexpr (allowed.contains(DType::kF32)) return std::type_identity<std::invoke_result_t<F&, float>>{};
  else if constexpr (allowed.contains(DType::kI64)) return std::type_identity<std::invoke_result_t<F&, int64_t>>{};
  else if constexpr (allowed.contains(DType::kU64)) return std::type_identity<std::invoke_result_t<F&, uint64_t>>{};
  else if constexpr (allowed.contains(DType::kI8)) return std::type_identity<std::invoke_result_t<F&, int8_t>>{};
  else if constexpr (allowed.contains(DType::kF16)) return std::type_identity<std::invoke_result_t<F&, Half>>{};
  else if constexpr (allowed.contains(DType::kI4)) return std::type_identity<std::invoke_result_t<F&, I4>>{};
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
    case DType::kF8E4M3FN: return call(F8E4M3FN{});
    case DType::kF8E4M3FNUZ: return call(F8E4M3FNUZ{});
    case DType::kF8E5M2: return call(F8E5M2{});
    case DType::kF8E5M2FNUZ: return call(F8E5M2FNUZ{});
    case DType::kF8E8M0: return call(F8E8M0{});
    case DType::kF4E2M1: return call(F4E2M1{});
    case DType::kI4: return call(I4{});
    case DType::kU4: return call(U4{});
    case DType::kI2: return call(I2{});
    case DType::kU2: return call(U2{});
  }
  std::unreachable();
}

}  // namespace tenon::runtime
