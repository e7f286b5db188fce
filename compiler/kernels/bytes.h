// Operands of integer products as words of 32 bits, which a processor multiplies in one dot-product instruction: four
// bytes, or two i16.
//
// Such an operand is a byte minus a zero point: an i8 or u8 tensor, the result of `cast` and `subtract` of one, or a
// constant whose values span less than 256. An instruction for bytes (BinaryOp::kByteDot) requires u8 on the left and
// i8 on the right; bytes of the other signedness are shifted by 128, and so is the zero point:
//
//   sum over k of (x - zx) * (w - zw) = sum of x * w - zx * sum of w - zw * sum of x + count * zx * zw
//
// in 32 bits with wraparound, like the operators. The sums of constant operands are computed at compile time. From
// i16 (BinaryOp::kInt16Dot) the zero points are subtracted beforehand.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/kernels/emitter.h"

namespace tenon::compiler::kernels {

struct Bytes {
  LazyTensor bytes;  // i8 or u8
  int64_t zero = 0;
};
// nullopt where the tensor is not recognized as bytes minus a zero point.
std::optional<Bytes> as_bytes(Emitter& emit, const LazyTensor& value);
// The same values as i8 and another zero point: u8 are shifted by 128.
Bytes as_signed(Emitter& emit, const Bytes& value);

// The elements of both operands in the form that the machine multiplies fastest, with exact results: bytes, or i16,
// whose zero points are 0. A constant right operand passes kByteDotSaturating if in each pair of terms, from the first
// one of its axis of terms, the positive bytes sum to at most 128 and the negative ones to at least -128: 255 * 128
// fits into i16. For GPUs both are bytes by themselves, in memory, and `dot` is kMultiply. Each element of the right
// operand is multiplied for each point of `rows`; unknown sizes may be 1.
struct DotOperands {
  LazyTensor left, right;
  int64_t left_zero = 0, right_zero = 0;
  BinaryOp dot = BinaryOp::kByteDot;
  int64_t word = 4;  // elements of a word; 1: elements are no words
};
DotOperands dot_operands(Emitter& emit, const Bytes& left, const Bytes& right, size_t right_axis,
                         std::span<const Dim> rows);

// Bytes or i16 packed into an i32, the first one in the lowest bits.
Expr pack_word(const std::vector<Expr>& elements);

// The tensor as i32 with four bytes or two i16 of the axis packed into each element; the last word is padded with
// zeros.
LazyTensor pack_words(Emitter& emit, const LazyTensor& elements, size_t axis);
// The sums of bytes along an axis in i32.
LazyTensor sums_along(Emitter& emit, const LazyTensor& bytes, size_t axis);

}  // namespace tenon::compiler::kernels
