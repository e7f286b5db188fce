#include "runtime/vm/scalar.h"

#include <cmath>
#include <concepts>
#include <cstring>
#include <type_traits>

namespace tenon::runtime {
namespace {

template <class T>
bool compute(ScalarOp op, const Word& left, const Word& right, Word& result) {
  constexpr bool kIsReal = std::is_floating_point_v<T>, kIsBool = std::same_as<T, bool>;
  T a, b;
  if constexpr (kIsBool) {
    a = (left.bits & 0xff) != 0;
    b = (right.bits & 0xff) != 0;
  } else {
    std::memcpy(&a, &left.bits, sizeof(T));
    std::memcpy(&b, &right.bits, sizeof(T));
  }
  const auto is = [&](auto value) {
    result = scalar_word(value);
    return true;
  };
  switch (op) {
    case ScalarOp::kEqual: return is(a == b);
    case ScalarOp::kNotEqual: return is(a != b);
    case ScalarOp::kLess: return is(a < b);
    case ScalarOp::kLessEqual: return is(a <= b);
    case ScalarOp::kGreater: return is(a > b);
    case ScalarOp::kGreaterEqual: return is(a >= b);
    case ScalarOp::kMinimum: return is(a < b || a != a ? a : b);
    case ScalarOp::kMaximum: return is(a > b || a != a ? a : b);
    default: break;
  }
  if constexpr (kIsReal) {
    switch (op) {
      case ScalarOp::kAdd: return is(a + b);
      case ScalarOp::kSubtract: return is(a - b);
      case ScalarOp::kMultiply: return is(a * b);
      case ScalarOp::kDivide: return is(a / b);
      case ScalarOp::kFloorDivide: return is(std::floor(a / b));
      default: return false;
    }
  } else {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    switch (op) {
      case ScalarOp::kAnd: return is(static_cast<T>(x & y));
      case ScalarOp::kOr: return is(static_cast<T>(x | y));
      case ScalarOp::kXor: return is(static_cast<T>(x ^ y));
      default: break;
    }
    if constexpr (!kIsBool) {
      switch (op) {
        case ScalarOp::kAdd: return is(static_cast<T>(x + y));
        case ScalarOp::kSubtract: return is(static_cast<T>(x - y));
        case ScalarOp::kMultiply: return is(static_cast<T>(x * y));
        default: break;
      }
      if (b == 0) return false;
      // The quotient of the smallest integer and -1 wraps.
      const bool negates = std::is_signed_v<T> && b == static_cast<T>(-1);
      const T quotient = negates ? static_cast<T>(0 - x) : static_cast<T>(a / b);
      const bool inexact = !negates && a % b != 0;
      if (op == ScalarOp::kDivide) return is(quotient);
      if (op == ScalarOp::kFloorDivide) return is(static_cast<T>(quotient - (inexact && (a < 0) != (b < 0))));
    }
    return false;
  }
}

}  // namespace

bool compute_scalar(ScalarOp op, DType dtype, const Word& a, const Word& b, Word& result) {
  switch (dtype) {
    case DType::kBool: return compute<bool>(op, a, b, result);
    case DType::kI8: return compute<int8_t>(op, a, b, result);
    case DType::kU8: return compute<uint8_t>(op, a, b, result);
    case DType::kI16: return compute<int16_t>(op, a, b, result);
    case DType::kU16: return compute<uint16_t>(op, a, b, result);
    case DType::kI32: return compute<int32_t>(op, a, b, result);
    case DType::kI64: return compute<int64_t>(op, a, b, result);
    case DType::kF32: return compute<float>(op, a, b, result);
    case DType::kF64: return compute<double>(op, a, b, result);
    case DType::kU32: return compute<uint32_t>(op, a, b, result);
    case DType::kU64: return compute<uint64_t>(op, a, b, result);
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0:
    case DType::kF4E2M1:
    case DType::kI4:
    case DType::kU4:
    case DType::kI2:
    case DType::kU2: return false;  // reference kernels compute these
  }
  return false;
}

}  // namespace tenon::runtime
