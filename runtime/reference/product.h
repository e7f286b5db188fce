// Rows times a matrix, the inner loop of convolutions, dense layers and matrix products: in a cache-friendly order that
// compilers vectorize.
#pragma once

#include <algorithm>
#include <type_traits>

#include "runtime/reference/support.h"

namespace tenon::runtime::reference {

// Dtypes of products: i8 is accumulated in i32, other types in their own.
inline constexpr DTypes kFactors = DTypes{DType::kI8, DType::kI32, DType::kI64} | kReals;
template <class T>
using Factor = std::conditional_t<std::is_same_v<T, int8_t>, int16_t, T>;  // the type in which it is multiplied
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, int8_t>, int32_t, T>;

inline DType product_dtype(DType factor) { return factor == DType::kI8 ? DType::kI32 : factor; }

// sum of a[i] * b[i]. Widening the operands to 16 bits lets compilers use the multiply-add of pairs.
inline int32_t dot(const int16_t* a, const int16_t* b, int64_t count) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += int32_t{a[i]} * b[i];
  return sum;
}

// Products of int8 are at most 2^14, so up to 2^16 of them cannot overflow; longer sums are computed in parts and wrap.
inline int32_t wrapping_dot(const int16_t* a, const int16_t* b, int64_t count) {
  constexpr int64_t kPart = 1 << 16;
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; i += kPart) {
    sum += static_cast<uint32_t>(dot(a + i, b + i, std::min(kPart, count - i)));
  }
  return static_cast<int32_t>(sum);
}

// out[m] = sum over k of column[k] * weights[m][k], in the order of k.
inline void multiply(const std::vector<int16_t>& column, const std::vector<int16_t>& weights, int64_t outputs,
                     int32_t* out) {
  const auto depth = static_cast<int64_t>(column.size());
  for (int64_t m = 0; m < outputs; ++m) out[m] = wrapping_dot(column.data(), weights.data() + m * depth, depth);
}

// As above with the weights transposed, weights[k][m]: vector code keeps the order of the float sums. Integers wrap.
template <class T>
void multiply(const std::vector<T>& column, const std::vector<T>& weights, int64_t outputs, T* out) {
  std::fill(out, out + outputs, T{0});
  for (size_t k = 0; k < column.size(); ++k) {
    const T x = column[k];
    const T* row = weights.data() + k * static_cast<size_t>(outputs);
    if constexpr (std::is_integral_v<T>) {
      for (int64_t m = 0; m < outputs; ++m) {
        out[m] =
            static_cast<T>(static_cast<uint64_t>(out[m]) + static_cast<uint64_t>(x) * static_cast<uint64_t>(row[m]));
      }
    } else {
      for (int64_t m = 0; m < outputs; ++m) out[m] += x * row[m];
    }
  }
}

// Weights [outputs][depth] in the order of `multiply`.
inline std::vector<int16_t> prepare(std::span<const int8_t> weights, int64_t, int64_t) {
  return {weights.begin(), weights.end()};
}
template <class T>
std::vector<T> prepare(std::span<const T> weights, int64_t outputs, int64_t depth) {
  std::vector<T> transposed(weights.size());
  for (int64_t m = 0; m < outputs; ++m) {
    for (int64_t k = 0; k < depth; ++k) transposed[k * outputs + m] = weights[m * depth + k];
  }
  return transposed;
}

}  // namespace tenon::runtime::reference
