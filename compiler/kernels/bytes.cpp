#include "compiler/kernels/bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tenon::compiler::kernels {
namespace {

bool is_byte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }

// byte - zero, in i32.
struct Less {
  Expr byte;
  int64_t zero = 0;
};
std::optional<Less> less_zero(const Expr& expr) {
  Less found{expr, 0};
  if (const auto* less = std::get_if<loop::Binary>(&expr->form); less && less->op == BinaryOp::kSubtract) {
    const auto* zero = std::get_if<loop::Literal>(&less->right->form);
    if (!zero || expr->dtype != DType::kI32) return std::nullopt;
    found = {less->left, zero->integer};
  }
  if (const auto* cast = std::get_if<loop::Convert>(&found.byte->form); cast && found.byte->dtype == DType::kI32)
    found.byte = cast->value;
  return is_byte(found.byte->dtype) ? std::optional(found) : std::nullopt;
}

std::optional<Bytes> constant_bytes(Emitter& emit, const Value& value) {
  if (is_byte(value.dtype)) return Bytes{value, 0};
  const auto all = std::as_const(*value.constant).data<int32_t>();
  if (all.empty()) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(all);
  const int64_t lo = least, hi = most;
  if (hi - lo > 255) return std::nullopt;
  const int64_t zero = lo >= -128 && hi <= 127 ? 0 : -128 - lo;
  Tensor bytes(DType::kI8, value.constant->shape());
  std::ranges::transform(all, bytes.data<int8_t>().begin(), [&](int32_t x) { return static_cast<int8_t>(x + zero); });
  return Bytes{emit.constant(bytes), zero};
}

// 128 more or less, in the other type.
Value flipped(Emitter& emit, const Value& value) {
  const DType other = value.dtype == DType::kI8 ? DType::kU8 : DType::kI8;
  if (value.constant) {
    Tensor result(other, value.constant->shape());
    const auto from = value.constant->bytes();
    std::ranges::transform(from, result.bytes().begin(), [](std::byte x) { return x ^ std::byte{0x80}; });
    return emit.constant(result);
  }
  return emit.expression(value.dims, other, [value, other](const Dims& at) {
    const Expr byte = loop::convert(DType::kU8, value.at(at));
    return loop::convert(other, loop::binary(BinaryOp::kBitXor, byte, loop::integer_literal(DType::kU8, 128)));
  });
}

// Elements in front of an axis, and behind.
std::pair<int64_t, int64_t> around(const runtime::Shape& shape, size_t axis) {
  int64_t before = 1, behind = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != axis) (i < axis ? before : behind) *= shape[i];
  }
  return {before, behind};
}

}  // namespace

std::optional<Bytes> as_bytes(Emitter& emit, const Value& value) {
  if (value.constant && (is_byte(value.dtype) || value.dtype == DType::kI32)) return constant_bytes(emit, value);
  if (is_byte(value.dtype)) return Bytes{value, 0};
  if (value.dtype != DType::kI32) return std::nullopt;
  Dims anywhere;
  for (size_t i = 0; i < value.rank(); ++i)
    anywhere.push_back(emit.context().dim(emit.context().symbol(fmt::format("i{}", i))));
  const auto found = less_zero(value.at(anywhere));
  if (!found) return std::nullopt;
  // Bytes that lie so in memory are there already.
  const auto* load = std::get_if<loop::Load>(&found->byte->form);
  if (load && load->indices == anywhere)
    return Bytes{emit.from_buffer(load->buffer, value.dims, found->byte->dtype), found->zero};
  return Bytes{emit.expression(value.dims, found->byte->dtype,
                               [value, dtype = found->byte->dtype, zero = found->zero](const Dims& at) {
                                 const auto less = less_zero(value.at(at));
                                 if (less && less->zero == zero && less->byte->dtype == dtype) return less->byte;
                                 // An element that is written in another way is the same number all the same.
                                 const Expr number = value.at(at);
                                 return loop::convert(dtype, number + like(number, static_cast<double>(zero)));
                               }),
               found->zero};
}

Bytes as_unsigned(Emitter& emit, Bytes value) {
  if (value.bytes.dtype == DType::kU8) return value;
  return {flipped(emit, value.bytes), value.zero + 128};
}
Bytes as_signed(Emitter& emit, Bytes value) {
  if (value.bytes.dtype == DType::kI8) return value;
  return {flipped(emit, value.bytes), value.zero - 128};
}

Expr word_of(const std::array<Expr, 4>& bytes) {
  Expr word;
  for (size_t i = 0; i < 4; ++i) {
    Expr byte = loop::convert(DType::kI32, loop::convert(DType::kU8, bytes[i]));
    if (i > 0)
      byte = loop::binary(BinaryOp::kShiftLeft, byte, loop::integer_literal(DType::kI32, static_cast<int64_t>(8 * i)));
    word = word ? loop::binary(BinaryOp::kBitOr, word, byte) : byte;
  }
  return word;
}

Value words(Emitter& emit, const Value& bytes, size_t axis) {
  Context& context = emit.context();
  if (bytes.constant) {
    runtime::Shape shape = bytes.constant->shape();
    const int64_t length = shape[axis], count = (length + 3) / 4;
    const auto [before, behind] = around(shape, axis);
    shape[axis] = count;
    Tensor result(DType::kI32, shape);
    const std::byte* from = bytes.constant->bytes().data();
    std::byte* to = result.bytes().data();
    for (int64_t i = 0; i < before; ++i) {
      if (behind == 1) std::copy_n(from + i * length, length, to + 4 * i * count);
      for (int64_t k = 0; k < length && behind > 1; ++k) {
        const std::byte* row = from + (i * length + k) * behind;
        std::byte* words = to + 4 * (i * count + k / 4) * behind + k % 4;
        for (int64_t j = 0; j < behind; ++j) words[4 * j] = row[j];
      }
    }
    return emit.constant(result);
  }
  Dims dims = bytes.dims;
  const auto length = bytes.dims[axis].constant();
  dims[axis] = context.ceil_divide(dims[axis], 4);
  return emit.expression(dims, DType::kI32, [=, &context](const Dims& at) {
    std::array<Expr, 4> four;
    for (int64_t b = 0; b < 4; ++b) {
      Dims from = at;
      from[axis] = context.add(context.multiply(at[axis], context.dim(4)), context.dim(b));
      const Expr byte = bytes.at(from);
      const bool inside = b == 0 || (length && *length % 4 == 0);
      four[static_cast<size_t>(b)] =
          inside
              ? byte
              : choose(less(loop::index_value(from[axis]), loop::index_value(bytes.dims[axis])), byte, like(byte, 0));
    }
    return word_of(four);
  });
}

Value sums_along(Emitter& emit, const Value& bytes, size_t axis) {
  Dims dims = bytes.dims;
  dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
  if (bytes.constant) {
    runtime::Shape shape = bytes.constant->shape();
    const int64_t length = shape[axis];
    const auto [before, behind] = around(shape, axis);
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
    Tensor result(DType::kI32, shape);
    const auto add = [&](auto all) {
      int32_t* sums = result.data<int32_t>().data();
      for (int64_t i = 0; i < before; ++i, sums += behind) {
        for (int64_t k = 0; k < length; ++k) {
          const auto* row = all.data() + (i * length + k) * behind;
          for (int64_t j = 0; j < behind; ++j)
            sums[j] = static_cast<int32_t>(static_cast<uint32_t>(sums[j]) + static_cast<uint32_t>(row[j]));
        }
      }
    };
    const Tensor& from = *bytes.constant;
    if (from.dtype() == DType::kI8) add(from.data<int8_t>());
    else add(from.data<uint8_t>());
    return emit.constant(result);
  }
  return emit.reduce("byte_sums", {.dims = dims, .over = {bytes.dims[axis]}, .term = [=](const Dims& at) {
                                     Dims from(at.begin(), at.end() - 1);
                                     from.insert(from.begin() + static_cast<ptrdiff_t>(axis), at.back());
                                     return loop::convert(DType::kI32, bytes.at(from));
                                   }});
}

}  // namespace tenon::compiler::kernels
