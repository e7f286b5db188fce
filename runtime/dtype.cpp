#include "runtime/dtype.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace tenon::runtime {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int bytes;
};
// In the order of the ids.
constexpr std::array<Row, kDTypeCount> kRows = {{{DType::kBool, "bool", 1},
                                                 {DType::kI8, "i8", 1},
                                                 {DType::kU8, "u8", 1},
                                                 {DType::kI16, "i16", 2},
                                                 {DType::kU16, "u16", 2},
                                                 {DType::kI32, "i32", 4},
                                                 {DType::kI64, "i64", 8},
                                                 {DType::kF32, "f32", 4},
                                                 {DType::kF64, "f64", 8},
                                                 {DType::kU32, "u32", 4},
                                                 {DType::kU64, "u64", 8},
                                                 {DType::kF16, "f16", 2},
                                                 {DType::kBF16, "bf16", 2},
                                                 {DType::kF8E4M3FN, "f8e4m3fn", 1},
                                                 {DType::kF8E4M3FNUZ, "f8e4m3fnuz", 1},
                                                 {DType::kF8E5M2, "f8e5m2", 1},
                                                 {DType::kF8E5M2FNUZ, "f8e5m2fnuz", 1},
                                                 {DType::kF8E8M0, "f8e8m0", 1},
                                                 {DType::kF4E2M1, "f4e2m1", 1},
                                                 {DType::kI4, "i4", 1},
                                                 {DType::kU4, "u4", 1},
                                                 {DType::kI2, "i2", 1},
                                                 {DType::kU2, "u2", 1}}};
static_assert([] {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].dtype) != i) return false;
  }
  return true;
}());

constexpr std::array<DType, kDTypeCount> kOrdered = {
    DType::kBool,   DType::kI2,     DType::kI4,       DType::kI8,         DType::kI16,    DType::kI32,
    DType::kI64,    DType::kU2,     DType::kU4,       DType::kU8,         DType::kU16,    DType::kU32,
    DType::kU64,    DType::kF4E2M1, DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ,
    DType::kF8E8M0, DType::kF16,    DType::kBF16,     DType::kF32,        DType::kF64};

}  // namespace

std::string_view name(DType dtype) { return kRows[static_cast<size_t>(dtype)].name; }

int bytes(DType dtype) { return kRows[static_cast<size_t>(dtype)].bytes; }

int bits(DType dtype) {
  if (!(kNarrowFloats | kNarrowIntegers).contains(dtype)) return 8 * bytes(dtype);
  return with_dtype<kNarrowFloats | kNarrowIntegers>(dtype, []<class T>(T) {
    if constexpr (is_narrow<T>) return T::format.bits();
    else return 0;
  });
}

std::span<const DType> all_dtypes() { return kOrdered; }

Expected<DType> parse_dtype(std::string_view text) {
  const auto found = std::ranges::find(kRows, text, &Row::name);
  if (found != kRows.end()) return found->dtype;
  std::vector<std::string_view> names;
  for (DType dtype : kOrdered) names.push_back(name(dtype));
  return error(fmt::format("unknown element type '{}'", text), {},
               fmt::format("the types are {}", fmt::join(names, ", ")));
}

std::string DTypes::str() const {
  std::string text;
  for (DType dtype : kOrdered) {
    if (contains(dtype)) text += fmt::format("{}{}", text.empty() ? "" : " or ", name(dtype));
  }
  return text;
}

template <int fraction_bits>
float ShortFloat<fraction_bits>::value() const {
  constexpr int kExponentBits = 15 - fraction_bits, kBias = (1 << (kExponentBits - 1)) - 1;
  if constexpr (kExponentBits == 8) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  const uint32_t exponent = bits >> fraction_bits & ((1u << kExponentBits) - 1);
  const uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  if (exponent == 0) {  // zero or subnormal: a multiple of the smallest positive value, which is exact in f32
    const float magnitude = std::ldexp(static_cast<float>(fraction), 1 - kBias - fraction_bits);
    return sign ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == (1u << kExponentBits) - 1 ? 255 : exponent + (127 - kBias);
  return std::bit_cast<float>(sign | wide << 23 | fraction << (23 - fraction_bits));
}

template <int fraction_bits>
uint16_t ShortFloat<fraction_bits>::round(float value) {
  // A NaN keeps its sign and the upper bits of its fraction, so that a value that came from this type is kept exactly.
  if (std::isnan(value)) {
    const auto wide = std::bit_cast<uint32_t>(value);
    const auto infinity = static_cast<uint16_t>(0x7fffu & ~((1u << fraction_bits) - 1));
    const uint32_t fraction = wide >> (23 - fraction_bits) & ((1u << fraction_bits) - 1);
    return static_cast<uint16_t>((wide >> 16 & 0x8000u) | infinity | (fraction ? fraction : 1u));
  }
  return round(static_cast<double>(value));
}

template <int fraction_bits>
uint16_t ShortFloat<fraction_bits>::round(double value) {
  constexpr int kExponentBits = 15 - fraction_bits, kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr int kLowest = 1 - kBias - fraction_bits;  // the exponent of the smallest positive value
  constexpr auto kInfinity = static_cast<uint16_t>(0x7fffu & ~((1u << fraction_bits) - 1));
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | kInfinity | 1u << (fraction_bits - 1));
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (magnitude >= std::ldexp(1.0, kBias + 1)) return sign | kInfinity;
  int exponent = 0;  // magnitude = m * 2^exponent with m in [0.5, 1)
  std::frexp(magnitude, &exponent);
  const int unit = std::max(exponent - 1 - fraction_bits, kLowest);  // the exponent of the last bit of the result
  // An integer of up to fraction_bits + 1 bits, whose carry into the next bit increments the exponent field.
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -unit)));
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(unit - kLowest) << fraction_bits) + units));
}

template struct ShortFloat<10>;
template struct ShortFloat<7>;

}  // namespace tenon::runtime
