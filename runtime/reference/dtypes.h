// Sets of dtypes, which operators and kernels state as supported; and the dispatch from a dtype to the C++ type.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "runtime/tensor.h"

namespace tenon::runtime {

struct DTypes {
  uint16_t bits = 0;  // public, so that a set can be a template's argument

  constexpr DTypes(std::initializer_list<DType> list) {  // NOLINT: a list is a set
    for (DType dtype : list) bits |= bit(dtype);
  }
  constexpr bool contains(DType dtype) const { return (bits & bit(dtype)) != 0; }
  constexpr DTypes operator|(DTypes other) const { return DTypes(static_cast<uint16_t>(bits | other.bits)); }
  constexpr bool operator==(const DTypes&) const = default;
  // "f32 or f64"
  std::string str() const;

  constexpr explicit DTypes(uint16_t bits) : bits(bits) {}
  static constexpr uint16_t bit(DType dtype) { return static_cast<uint16_t>(1u << static_cast<unsigned>(dtype)); }
};

inline constexpr DTypes kBoolean{DType::kBool}, kReals{DType::kF32, DType::kF64}, kIndices{DType::kI32, DType::kI64};
inline constexpr DTypes kSignedIntegers{DType::kI8, DType::kI16, DType::kI32, DType::kI64};
inline constexpr DTypes kIntegers = kSignedIntegers | DTypes{DType::kU8, DType::kU16};
inline constexpr DTypes kNumericTypes = kIntegers | kReals, kSignedNumericTypes = kSignedIntegers | kReals;
inline constexpr DTypes kAnyDType = kNumericTypes | kBoolean;

// visit(T{}) for the C++ type of `dtype`, which must be one of `allowed`: `visit` is compiled for these only.
template <DTypes allowed, class F>
void with_dtype(DType dtype, F&& visit) {
  auto call = [&]<class T>(T) {
    if constexpr (allowed.contains(dtype_of<T>)) visit(T{});
    else std::unreachable();
  };
  switch (dtype) {
    case DType::kBool: call(bool{}); break;
    case DType::kI8: call(int8_t{}); break;
    case DType::kU8: call(uint8_t{}); break;
    case DType::kI16: call(int16_t{}); break;
    case DType::kU16: call(uint16_t{}); break;
    case DType::kI32: call(int32_t{}); break;
    case DType::kI64: call(int64_t{}); break;
    case DType::kF32: call(float{}); break;
    case DType::kF64: call(double{}); break;
  }
}

}  // namespace tenon::runtime
