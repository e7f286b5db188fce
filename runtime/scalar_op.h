// The operations on scalars that the virtual machine computes itself, without a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/dtype.h"

namespace tenon::runtime {

// Operations on two scalars (tensors of rank 0) of one dtype, as the reference kernels of the same names compute them:
// integers wrap, and an integer division by 0 is an error. Comparisons result in bool, logic and bits keep the dtype.
enum class ScalarOp : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kMinimum,
  kMaximum,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr,
  kXor,
};
inline constexpr size_t kScalarOps = static_cast<size_t>(ScalarOp::kXor) + 1;
// Whether the operation exists on this dtype: bits on integers and bool, arithmetic and order on all but bool.
bool is_defined(ScalarOp op, DType dtype);
std::string_view name(ScalarOp op);  // of the operator: "add"; "logical_and" on bool, "bitwise_and" on integers

}  // namespace tenon::runtime
