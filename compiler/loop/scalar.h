// The reference arithmetic of scalar expressions, one operation at a time; every back end must agree with it.
#pragma once

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// A value of some dtype: `real` for float types, in their precision; `integer` for all others, in their range; a u64 is
// the int64_t with the same bits.
struct Scalar {
  double real = 0;
  int64_t integer = 0;
};

// The integer, wrapped around to the type's range.
int64_t wrap(DType dtype, int64_t value);

Expected<Scalar> apply(UnaryOp op, DType dtype, Scalar value);
// `dtype` is the operands' type; comparisons return a bool. Both operands are evaluated already, so kAnd and kOr are
// ordinary operations.
Expected<Scalar> apply(BinaryOp op, DType dtype, Scalar left, Scalar right);
Expected<Scalar> convert(DType from, DType to, Scalar value);

// Access to an element of a tensor by its offset.
Scalar read(const runtime::Tensor& tensor, int64_t offset);
void write(runtime::Tensor& tensor, int64_t offset, Scalar value);

}  // namespace tenon::compiler::loop
