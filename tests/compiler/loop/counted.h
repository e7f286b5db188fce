// A tensor whose elements tell where they were read.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/tensor.h"

namespace tenon::compiler::loop {

// i32 elements 0, 1, ... in memory order.
inline runtime::Tensor counted(runtime::Shape shape) {
  runtime::Tensor tensor(DType::kI32, std::move(shape));
  int32_t next = 0;
  for (int32_t& value : tensor.data<int32_t>()) value = next++;
  return tensor;
}

}  // namespace tenon::compiler::loop
