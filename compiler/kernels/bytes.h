// Operands of integer products as packed int8x4: four bytes that a processor multiplies in one dot-product instruction.
//
// Such an operand is a byte minus a zero point: an i8 or u8 tensor, the result of `cast` and `subtract` of one, or a
// constant whose values span less than 256. The instruction (BinaryOp::kByteDot) requires u8 on the left and i8 on the
// right; bytes of the other signedness are shifted by 128, and so is the zero point:
//
//   sum over k of (x - zx) * (w - zw) = sum of x * w - zx * sum of w - zw * sum of x + count * zx * zw
//
// in 32 bits with wraparound, like the operators. The sums of constant operands are computed at compile time.
#pragma once

#include <array>
#include <optional>

#include "compiler/kernels/emitter.h"

namespace tenon::compiler::kernels {

struct Bytes {
  LazyTensor bytes;  // i8 or u8
  int64_t zero = 0;
};
// nullopt where the tensor is not recognized as bytes minus a zero point.
std::optional<Bytes> as_bytes(Emitter& emit, const LazyTensor& value);

// The values converted to bytes of this signedness.
Bytes as_unsigned(Emitter& emit, Bytes value);
Bytes as_signed(Emitter& emit, Bytes value);

// The operation that multiplies packed bytes by these i8 weights fastest on the machine, with exact results. A constant
// passes kByteDotSaturating if in each pair of terms, from the first one of the axis, the positive weights sum to at
// most 128 and the negative ones to at least -128: 255 * 128 fits into i16.
BinaryOp byte_dot_of(const Machine& machine, const LazyTensor& weights, size_t axis);

// Four bytes packed into an i32, the first one in the lowest bits.
Expr pack_bytes(const std::array<Expr, 4>& bytes);

// The tensor as i32 with four bytes of the axis packed into each element; the last pack is padded with zeros.
LazyTensor pack_int8x4(Emitter& emit, const LazyTensor& bytes, size_t axis);
// The sums along an axis in i32.
LazyTensor sums_along(Emitter& emit, const LazyTensor& bytes, size_t axis);

}  // namespace tenon::compiler::kernels
