// Numbers of 2 to 8 bits that ONNX knows as weights and activations of quantized models.
//
// Semantics: each is stored in a byte of its own; only files pack two or four of them into one. They are types of
// storage: kernels compute with their values in f32 or i32, which represent all of them exactly. A float is rounded to
// the nearest, halves to even; what exceeds the range becomes infinity, NaN where there is no infinity, and the largest
// magnitude where there is neither. An integer keeps the low bits of what is converted to it.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tenon::runtime {

struct NarrowFormat {
  // The encodings that are not finite.
  enum class Special : uint8_t {
    kNone,
    kInfinityAndNan,  // as IEEE 754: the largest exponent
    kNan,             // all bits but the sign
    kNanForMinusZero  // the sign alone, so that there is no -0
  };

  bool has_sign = true;
  uint8_t exponent_bits = 0;  // 0: an integer in two's complement
  uint8_t fraction_bits = 0;
  int16_t bias = 0;
  Special special = Special::kNone;

  constexpr bool is_integer() const { return exponent_bits == 0; }
  constexpr int bits() const { return (has_sign ? 1 : 0) + exponent_bits + fraction_bits; }
  // The largest and the smallest finite value.
  double max() const;
  double min() const;
  float value(uint8_t bits) const;
  uint8_t round(double value) const;
  uint8_t wrap(int64_t value) const { return static_cast<uint8_t>(value & ((1 << bits()) - 1)); }
};

template <NarrowFormat given>
struct Narrow {
  static constexpr NarrowFormat format = given;
  // What a kernel computes with instead.
  using Wide = std::conditional_t<format.is_integer(), int32_t, float>;

  uint8_t bits = 0;

  Narrow() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit Narrow(T value) {
    if constexpr (!format.is_integer()) bits = format.round(static_cast<double>(value));
    else if constexpr (std::is_integral_v<T>) bits = format.wrap(static_cast<int64_t>(value));
    else bits = format.wrap(whole(static_cast<double>(value)));
  }
  // Exact in f32, and integers in each type that holds them; floats truncate to integers.
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit operator T() const { return static_cast<T>(format.value(bits)); }
  static Narrow of_bits(uint8_t bits) {
    Narrow x;
    x.bits = bits;
    return x;
  }

  // As numbers: -0 equals 0, and a NaN equals nothing.
  friend bool operator==(Narrow a, Narrow b) { return format.value(a.bits) == format.value(b.bits); }
  friend std::partial_ordering operator<=>(Narrow a, Narrow b) { return format.value(a.bits) <=> format.value(b.bits); }

 private:
  static int64_t whole(double value) {
    constexpr double kEnd = 0x1p62;  // beyond it, all low bits are 0
    return value > -kEnd && value < kEnd ? static_cast<int64_t>(value) : 0;
  }
};

using F8E4M3FN = Narrow<NarrowFormat{true, 4, 3, 7, NarrowFormat::Special::kNan}>;
using F8E4M3FNUZ = Narrow<NarrowFormat{true, 4, 3, 8, NarrowFormat::Special::kNanForMinusZero}>;
using F8E5M2 = Narrow<NarrowFormat{true, 5, 2, 15, NarrowFormat::Special::kInfinityAndNan}>;
using F8E5M2FNUZ = Narrow<NarrowFormat{true, 5, 2, 16, NarrowFormat::Special::kNanForMinusZero}>;
using F8E8M0 = Narrow<NarrowFormat{false, 8, 0, 127, NarrowFormat::Special::kNan}>;  // powers of two: no zero, no sign
using F4E2M1 = Narrow<NarrowFormat{true, 2, 1, 1}>;
using I4 = Narrow<NarrowFormat{.has_sign = true, .fraction_bits = 3}>;
using U4 = Narrow<NarrowFormat{.has_sign = false, .fraction_bits = 4}>;
using I2 = Narrow<NarrowFormat{.has_sign = true, .fraction_bits = 1}>;
using U2 = Narrow<NarrowFormat{.has_sign = false, .fraction_bits = 2}>;

template <class T>
inline constexpr bool is_narrow = false;
template <NarrowFormat format>
inline constexpr bool is_narrow<Narrow<format>> = true;

}  // namespace tenon::runtime
