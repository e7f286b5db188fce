#include "compiler/loop/scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/loop/expr.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

template <class F>
auto with_type(DType dtype, F&& f) {
  return runtime::with_dtype<kElementTypes>(dtype, std::forward<F>(f));
}

template <class T>
T real_unary(UnaryOp op, T x) {
  switch (op) {
    case UnaryOp::kNegate: return -x;
    case UnaryOp::kAbs: return std::fabs(x);
    case UnaryOp::kSqrt: return std::sqrt(x);
    case UnaryOp::kExp: return std::exp(x);
    case UnaryOp::kLog: return std::log(x);
    case UnaryOp::kTanh: return std::tanh(x);
    case UnaryOp::kErf: return std::erf(x);
    case UnaryOp::kSin: return std::sin(x);
    case UnaryOp::kCos: return std::cos(x);
    case UnaryOp::kAtan: return std::atan(x);
    case UnaryOp::kFloor: return std::floor(x);
    case UnaryOp::kCeil: return std::ceil(x);
    case UnaryOp::kRound: return std::nearbyint(x);  // halves to even
    case UnaryOp::kNot: break;
  }
  return x;
}

template <class T>
T real_binary(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::kAdd: return a + b;
    case BinaryOp::kSubtract: return a - b;
    case BinaryOp::kMultiply: return a * b;
    case BinaryOp::kDivide: return a / b;
    case BinaryOp::kMin: return std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b);
    case BinaryOp::kMax: return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b);
    case BinaryOp::kPower: return std::pow(a, b);
    case BinaryOp::kRemainder: return std::fmod(a, b);
    case BinaryOp::kEqual:
    case BinaryOp::kLess:
    case BinaryOp::kLessEqual:
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
    case BinaryOp::kByteDot:
    case BinaryOp::kByteDotSaturating:
    case BinaryOp::kInt16Dot: break;
  }
  return a;
}

int64_t byte_dot(uint64_t x, uint64_t y, bool saturates) {
  int64_t sum = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    int64_t pair = 0;
    for (const int at : {shift, shift + 8})
      pair += static_cast<uint8_t>(x >> at) * static_cast<int8_t>(static_cast<uint8_t>(y >> at));
    sum += saturates ? std::clamp<int64_t>(pair, INT16_MIN, INT16_MAX) : pair;
  }
  return sum;
}

int64_t int16_dot(uint64_t x, uint64_t y) {
  int64_t sum = 0;
  for (const int shift : {0, 16}) {
    const auto nth = [shift](uint64_t word) -> int64_t {
      return static_cast<int16_t>(static_cast<uint16_t>(word >> shift));
    };
    sum += nth(x) * nth(y);
  }
  return sum;
}

int64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
  return static_cast<int64_t>(result);
}

bool integer_less(DType dtype, int64_t a, int64_t b) {
  return dtype == DType::kU64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

Expected<int64_t> integer_binary(BinaryOp op, DType dtype, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);  // wraps without overflow
  const auto bits = 8 * static_cast<uint64_t>(runtime::bytes(dtype));
  const bool wide = dtype == DType::kU64;  // the only type whose values are not all values of int64_t
  switch (op) {
    case BinaryOp::kAdd: return static_cast<int64_t>(x + y);
    case BinaryOp::kSubtract: return static_cast<int64_t>(x - y);
    case BinaryOp::kMultiply: return static_cast<int64_t>(x * y);
    case BinaryOp::kDivide:
    case BinaryOp::kRemainder:
      if (b == 0) return error("an integer is divided by 0");
      if (wide) return static_cast<int64_t>(op == BinaryOp::kDivide ? x / y : x % y);
      if (b == -1) return op == BinaryOp::kDivide ? static_cast<int64_t>(0 - x) : 0;
      return op == BinaryOp::kDivide ? a / b : a % b;
    case BinaryOp::kMin: return integer_less(dtype, b, a) ? b : a;
    case BinaryOp::kMax: return integer_less(dtype, a, b) ? b : a;
    case BinaryOp::kAnd:
    case BinaryOp::kBitAnd: return a & b;
    case BinaryOp::kOr:
    case BinaryOp::kBitOr: return a | b;
    case BinaryOp::kBitXor: return a ^ b;
    case BinaryOp::kShiftLeft: return y < bits ? static_cast<int64_t>(x << y) : 0;
    case BinaryOp::kShiftRight:
      if (wide) return y < bits ? static_cast<int64_t>(x >> y) : 0;
      return y < bits ? a >> y : a < 0 ? -1 : 0;
    case BinaryOp::kByteDot: return byte_dot(x, y, false);
    case BinaryOp::kByteDotSaturating: return byte_dot(x, y, true);
    case BinaryOp::kInt16Dot: return int16_dot(x, y);
    case BinaryOp::kPower: return power(x, bits < 64 ? y & ((uint64_t{1} << bits) - 1) : y);
    case BinaryOp::kEqual:
    case BinaryOp::kLess:
    case BinaryOp::kLessEqual: break;
  }
  return a;
}

}  // namespace

int64_t wrap(DType dtype, int64_t value) {
  return with_type(dtype, [&](auto type) -> int64_t {
    using T = decltype(type);
    if constexpr (std::is_integral_v<T> && !std::same_as<T, bool>) return static_cast<T>(value);
    else return std::same_as<T, bool> ? static_cast<int64_t>(value != 0) : value;
  });
}

Expected<Scalar> apply(UnaryOp op, DType dtype, Scalar value) {
  if (dtype == DType::kF32) return Scalar{.real = real_unary(op, static_cast<float>(value.real))};
  if (dtype == DType::kF64) return Scalar{.real = real_unary(op, value.real)};
  if (op == UnaryOp::kNot) return Scalar{.integer = value.integer == 0};
  const bool negate = op == UnaryOp::kNegate || integer_less(dtype, value.integer, 0);  // else kAbs
  const auto bits = static_cast<uint64_t>(value.integer);
  return Scalar{.integer = wrap(dtype, static_cast<int64_t>(negate ? 0 - bits : bits))};
}

Expected<Scalar> apply(BinaryOp op, DType dtype, Scalar left, Scalar right) {
  const bool real = is_float(dtype);
  switch (op) {
    case BinaryOp::kEqual: return Scalar{.integer = real ? left.real == right.real : left.integer == right.integer};
    case BinaryOp::kLess:
      return Scalar{.integer = real ? left.real < right.real : integer_less(dtype, left.integer, right.integer)};
    case BinaryOp::kLessEqual:
      return Scalar{.integer = real ? left.real <= right.real : !integer_less(dtype, right.integer, left.integer)};
    case BinaryOp::kAdd:
    case BinaryOp::kSubtract:
    case BinaryOp::kMultiply:
    case BinaryOp::kDivide:
    case BinaryOp::kRemainder:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kPower:
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
    case BinaryOp::kByteDot:
    case BinaryOp::kByteDotSaturating:
    case BinaryOp::kInt16Dot: break;
  }
  if (dtype == DType::kF32)
    return Scalar{.real = real_binary(op, static_cast<float>(left.real), static_cast<float>(right.real))};
  if (dtype == DType::kF64) return Scalar{.real = real_binary(op, left.real, right.real)};
  TENON_TRY_ASSIGN(value, integer_binary(op, dtype, left.integer, right.integer));
  return Scalar{.integer = wrap(dtype, *value)};
}

Expected<Scalar> convert(DType from, DType to, Scalar value) {
  if (is_float(from)) {
    if (to == DType::kF32) return Scalar{.real = static_cast<float>(value.real)};
    if (to == DType::kF64) return value;
    if (to == DType::kF16) return Scalar{.real = static_cast<double>(runtime::Half(value.real))};
    if (to == DType::kBF16) return Scalar{.real = static_cast<double>(runtime::BFloat16(value.real))};
    if (to == DType::kBool) return Scalar{.integer = value.real != 0};
    const double whole = std::trunc(value.real);
    const bool fits = with_type(to, [&](auto type) {
      using T = decltype(type);
      if constexpr (std::is_integral_v<T>) {
        // 2^n of the range's upper end is exact in a double, while the largest i64 and u64 are not.
        return whole >= static_cast<double>(std::numeric_limits<T>::min()) &&
               whole < std::ldexp(1.0, std::numeric_limits<T>::digits);
      } else {
        return true;
      }
    });
    if (!fits) return error(fmt::format("{} does not fit into {}", value.real, runtime::name(to)));
    return Scalar{.integer = to == DType::kU64 ? static_cast<int64_t>(static_cast<uint64_t>(whole))
                                               : static_cast<int64_t>(whole)};
  }
  const auto as_real = [&]<class Real>(Real) {
    return Scalar{.real = from == DType::kU64 ? static_cast<Real>(static_cast<uint64_t>(value.integer))
                                              : static_cast<Real>(value.integer)};
  };
  if (to == DType::kF32) return as_real(float{});
  if (to == DType::kF64) return as_real(double{});
  return Scalar{.integer = wrap(to, value.integer)};
}

Scalar read(const runtime::Tensor& tensor, int64_t offset) {
  return with_type(tensor.dtype(), [&](auto type) {
    using T = decltype(type);
    const T value = tensor.data<T>()[static_cast<size_t>(offset)];
    if constexpr (runtime::is_real<T>) return Scalar{.real = static_cast<double>(value)};
    else return Scalar{.integer = static_cast<int64_t>(value)};
  });
}

void write(runtime::Tensor& tensor, int64_t offset, Scalar value) {
  with_type(tensor.dtype(), [&](auto type) {
    using T = decltype(type);
    T& element = tensor.data<T>()[static_cast<size_t>(offset)];
    if constexpr (runtime::is_real<T>) element = static_cast<T>(value.real);
    else element = static_cast<T>(value.integer);
  });
}

}  // namespace tenon::compiler::loop
