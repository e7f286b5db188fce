// Operands for comparisons of templates with their algorithms.
#pragma once

#include "runtime/tensor.h"

namespace tenon::compiler::schedules {

// Small integers, whose sums are exact in any order.
inline runtime::Tensor filled(runtime::Shape shape) {
  runtime::Tensor tensor(runtime::DType::kF32, std::move(shape));
  auto data = tensor.data<float>();
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(static_cast<int>(i * 37 % 29) - 14);
  return tensor;
}

}  // namespace tenon::compiler::schedules
