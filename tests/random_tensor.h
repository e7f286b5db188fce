// Random tensors for tests whose results must not depend on the order of sums: multiples of a fraction that add up
// exactly.
#pragma once

#include <random>
#include <type_traits>
#include <utility>

#include "runtime/dtype.h"

namespace tenon {

// Floats in -8 / parts .. 8 / parts, integers in -8 .. 8, or 0 .. 8.
inline runtime::Tensor random_tensor(std::mt19937& random, runtime::DType dtype, runtime::Shape shape, int parts = 4) {
  runtime::Tensor tensor(dtype, std::move(shape));
  runtime::with_dtype<runtime::kNumericTypes>(dtype, [&]<class T>(T) {
    std::uniform_int_distribution<int> some(std::is_unsigned_v<T> ? 0 : -8, 8);
    for (T& x : tensor.data<T>())
      x = static_cast<T>(static_cast<double>(some(random)) / (runtime::is_real<T> ? parts : 1));
  });
  return tensor;
}

}  // namespace tenon
