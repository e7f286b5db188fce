// Operands of integer products as bytes, four in a word: what a processor multiplies in one instruction.
//
// An operand is a byte less a number, its zero: i8 and u8 tensors are, and so is what `cast` and `subtract` make of
// them, and a constant whose numbers span less than 256. The instruction (BinaryOp::kByteDot) takes u8 on the left and
// i8 on the right; the other kind of byte is 128 more or less, which goes to the zero:
//
//   sum over k of (x - zx) * (w - zw) = sum of x * w - zx * sum of w - zw * sum of x + number * zx * zw
//
// in 32 bits that wrap around, as the operators' do. The sums of constants are made when they are compiled.
#pragma once

#include <array>
#include <optional>

#include "compiler/kernels/emitter.h"

namespace tenon::compiler::kernels {

struct Bytes {
  Value bytes;  // i8 or u8
  int64_t zero = 0;
};
// Nothing where the value is something else, as far as can be seen.
std::optional<Bytes> as_bytes(Emitter& emit, const Value& value);

// The same numbers in bytes of the other kind, or of this.
Bytes as_unsigned(Emitter& emit, Bytes value);
Bytes as_signed(Emitter& emit, Bytes value);

// A word whose lowest byte is the first of these.
Expr word_of(const std::array<Expr, 4>& bytes);

// i32, with four bytes of the axis in each element, the last filled up with zeros.
Value words(Emitter& emit, const Value& bytes, size_t axis);
// The sums along an axis, in i32.
Value sums_along(Emitter& emit, const Value& bytes, size_t axis);

}  // namespace tenon::compiler::kernels
