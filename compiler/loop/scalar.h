// The arithmetic of scalar expressions, one operation at a time: what every back end is held to.
#pragma once

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// A value of some dtype: `real` of float types, in their precision; `integer` of all others, in their range.
struct Scalar {
  double real = 0;
  int64_t integer = 0;
};

// The integer, wrapped around into the type.
int64_t wrap(DType dtype, int64_t value);

Expected<Scalar> apply(UnaryOp op, DType dtype, Scalar value);
// `dtype` is that of the operands; comparisons give a bool. Both operands are there, so kAnd and kOr are plain.
Expected<Scalar> apply(BinaryOp op, DType dtype, Scalar left, Scalar right);
Expected<Scalar> convert(DType from, DType to, Scalar value);

// An element of a tensor.
Scalar read(const runtime::Tensor& tensor, int64_t at);
void write(runtime::Tensor& tensor, int64_t at, Scalar value);

}  // namespace tenon::compiler::loop
