#include "runtime/narrow.h"

#include <algorithm>
#include <cmath>

namespace tenon::runtime {

using Special = NarrowFormat::Special;

namespace {

// The largest encoding of a finite magnitude.
uint8_t largest(const NarrowFormat& format) {
  const int magnitude_bits = format.exponent_bits + format.fraction_bits, all = (1 << magnitude_bits) - 1;
  switch (format.special) {
    case Special::kNone:
    case Special::kNanForMinusZero: return static_cast<uint8_t>(all);
    case Special::kNan: return static_cast<uint8_t>(all - 1);
    case Special::kInfinityAndNan: return static_cast<uint8_t>(all - (1 << format.fraction_bits));
  }
  return 0;
}

// The value of the encoding of a magnitude.
double magnitude_of(const NarrowFormat& format, int code) {
  const int exponent = code >> format.fraction_bits, fraction = code & ((1 << format.fraction_bits) - 1);
  const int implicit = 1 << format.fraction_bits;
  if (!format.has_sign) return std::ldexp(1.0, code - format.bias);  // a power of two, without subnormal ones
  return exponent == 0 ? std::ldexp(fraction, 1 - format.bias - format.fraction_bits)
                       : std::ldexp(implicit + fraction, exponent - format.bias - format.fraction_bits);
}

}  // namespace

double NarrowFormat::max() const {
  if (is_integer()) return (1 << fraction_bits) - 1;
  return magnitude_of(*this, largest(*this));
}

double NarrowFormat::min() const {
  if (is_integer()) return has_sign ? -(1 << fraction_bits) : 0;
  return has_sign ? -max() : magnitude_of(*this, 0);
}

float NarrowFormat::value(uint8_t code) const {
  if (is_integer()) {
    const int end = 1 << bits(), value = code & (end - 1);
    return static_cast<float>(has_sign && value >= end / 2 ? value - end : value);
  }
  const int sign_bit = has_sign ? 1 << (exponent_bits + fraction_bits) : 0;
  const bool negative = (code & sign_bit) != 0;
  const int magnitude = code & ((1 << (exponent_bits + fraction_bits)) - 1), beyond = magnitude - largest(*this);
  if (special == Special::kNanForMinusZero && negative && magnitude == 0) return std::nanf("");
  if (beyond <= 0) {
    const auto value = static_cast<float>(magnitude_of(*this, magnitude));
    return negative ? -value : value;
  }
  const bool infinite = special == Special::kInfinityAndNan && beyond == 1;
  return std::copysign(infinite ? INFINITY : std::nanf(""), negative ? -1.0f : 1.0f);
}

uint8_t NarrowFormat::round(double value) const {
  const int magnitude_bits = exponent_bits + fraction_bits, limit = largest(*this);
  const bool negative = std::signbit(value);
  const int sign = has_sign && negative ? 1 << magnitude_bits : 0;
  const auto nan = [&] {
    switch (special) {
      case Special::kNone: return has_sign ? 1 << magnitude_bits : 0;  // as other programs do: -0
      case Special::kNanForMinusZero: return 1 << magnitude_bits;
      case Special::kNan: return sign | ((1 << magnitude_bits) - 1);
      case Special::kInfinityAndNan: return sign | (limit + 1) | 1 << (fraction_bits - 1);
    }
    return 0;
  };
  if (std::isnan(value) || (!has_sign && value < 0)) return static_cast<uint8_t>(nan());
  const double magnitude = std::fabs(value);
  int code = 0;
  if (std::isinf(magnitude)) {
    code = limit + 1;
  } else if (!has_sign) {  // halves go up
    int exponent = 0;
    const double mantissa = std::frexp(magnitude, &exponent);  // in [0.5, 1)
    code = magnitude == 0 ? 0 : std::max(0, exponent - 1 + bias + (mantissa >= 0.75 ? 1 : 0));
  } else if (magnitude > 0) {
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    const int lowest = 1 - bias - fraction_bits, unit = std::max(exponent - 1 - fraction_bits, lowest);
    // Of up to fraction_bits + 1 bits: its carry into the next bit increments the exponent.
    const int units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -unit)));
    code = ((unit - lowest) << fraction_bits) + units;
  }
  if (code > limit) {
    if (special == Special::kNan || special == Special::kNanForMinusZero) return static_cast<uint8_t>(nan());
    code = special == Special::kInfinityAndNan ? limit + 1 : limit;
  }
  if (special == Special::kNanForMinusZero && code == 0) return 0;
  return static_cast<uint8_t>(sign | code);
}

}  // namespace tenon::runtime
