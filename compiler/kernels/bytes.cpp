#include "compiler/kernels/bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace tenon::compiler::kernels {
namespace {

bool is_byte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }

// The expression byte - zero in i32.
struct CenteredByte {
  Expr byte;
  int64_t zero = 0;
};
std::optional<CenteredByte> match_centered_byte(const Expr& expr) {
  CenteredByte found{expr, 0};
  if (const auto* difference = std::get_if<loop::Binary>(&expr->form);
      difference && difference->op == BinaryOp::kSubtract) {
    const auto* zero = std::get_if<loop::Literal>(&difference->right->form);
    if (!zero || expr->dtype != DType::kI32) return std::nullopt;
    found = {difference->left, zero->integer};
  }
  if (const auto* cast = std::get_if<loop::Convert>(&found.byte->form); cast && found.byte->dtype == DType::kI32)
    found.byte = cast->value;
  return is_byte(found.byte->dtype) ? std::optional(found) : std::nullopt;
}

std::optional<Bytes> constant_bytes(Emitter& emit, const LazyTensor& value) {
  if (is_byte(value.dtype)) return Bytes{value, 0};
  const auto values = std::as_const(*value.constant).data<int32_t>();
  if (values.empty()) return std::nullopt;
  const auto [lowest, highest] = std::ranges::minmax(values);
  const int64_t lo = lowest, hi = highest;
  if (hi - lo > 255) return std::nullopt;
  const int64_t zero = lo >= -128 && hi <= 127 ? 0 : -128 - lo;
  Tensor bytes(DType::kI8, value.constant->shape());
  std::ranges::transform(values, bytes.data<int8_t>().begin(),
                         [&](int32_t x) { return static_cast<int8_t>(x + zero); });
  return Bytes{emit.constant(bytes), zero};
}

// The bytes shifted by 128, in the type of the other signedness.
LazyTensor flip_signedness(Emitter& emit, const LazyTensor& value) {
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

// The numbers of elements of the axes before an axis and after it.
std::pair<int64_t, int64_t> elements_around(const runtime::Shape& shape, size_t axis) {
  int64_t before = 1, after = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != axis) (i < axis ? before : after) *= shape[i];
  }
  return {before, after};
}

// Whether all pairs along the axis pass kByteDotSaturating.
bool has_small_pairs(const LazyTensor& weights, size_t axis) {
  if (!weights.constant) return false;
  const auto [before, after] = elements_around(weights.constant->shape(), axis);
  const int64_t length = weights.constant->shape()[axis];
  const auto values = std::as_const(*weights.constant).data<int8_t>();
  const auto at = [&](int64_t i, int64_t k, int64_t j) {
    return values[static_cast<size_t>((i * length + k) * after + j)];
  };
  for (int64_t i = 0; i < before; ++i) {
    for (int64_t k = 0; k + 1 < length; k += 2) {
      for (int64_t j = 0; j < after; ++j) {
        const int first = at(i, k, j), second = at(i, k + 1, j);
        if (std::max(first, 0) + std::max(second, 0) > 128 || std::min(first, 0) + std::min(second, 0) < -128)
          return false;
      }
    }
  }
  return true;
}

// The bytes converted to this signedness.
Bytes as_unsigned(Emitter& emit, const Bytes& value) {
  if (value.bytes.dtype == DType::kU8) return value;
  return {flip_signedness(emit, value.bytes), value.zero + 128};
}

// Whether i16 are multiplied faster than bytes, by the knob "word". They take three quarters of the cycles, which few
// rows do not repay: constants are read at twice the size. Operands that are packed at run time are read once anyway.
bool selects_int16(Emitter& emit, const Bytes& right, std::span<const Dim> rows) {
  constexpr double kRowCycles = 0.75, kL2Loads = 4, kMemoryLoads = 10;  // in units of the cycles of a row of bytes
  double load = 0;
  if (right.bytes.constant) {
    const auto bytes = static_cast<int64_t>(sizeof(int16_t)) * right.bytes.constant->size();
    load = bytes > emit.machine().l2_bytes ? kMemoryLoads : kL2Loads;
  }
  double count = 1;
  for (const Dim size : rows) count *= static_cast<double>(size.constant().value_or(1));
  return emit.choose_option("word", {{"bytes", count + load}, {"int16", kRowCycles * count + 2 * load}}) == 1;
}

// The bytes minus their zero point, as i16.
bool fits_int16(const Bytes& value) { return std::abs(value.zero) <= INT16_MAX - 255; }
LazyTensor centered(Emitter& emit, const Bytes& value) {
  if (value.bytes.constant) {
    Tensor result(DType::kI16, value.bytes.constant->shape());
    const auto subtract = [&](auto values) {
      std::ranges::transform(values, result.data<int16_t>().begin(),
                             [&](auto x) { return static_cast<int16_t>(x - value.zero); });
    };
    const Tensor& from = *value.bytes.constant;
    if (from.dtype() == DType::kI8) subtract(from.data<int8_t>());
    else subtract(from.data<uint8_t>());
    return emit.constant(result);
  }
  return emit.expression(value.bytes.dims, DType::kI16, [=](const Dims& at) {
    const Expr wide = loop::convert(DType::kI16, value.bytes.at(at));
    return value.zero == 0 ? wide : wide - loop::integer_literal(DType::kI16, value.zero);
  });
}

}  // namespace

std::optional<Bytes> as_bytes(Emitter& emit, const LazyTensor& value) {
  if (value.constant && (is_byte(value.dtype) || value.dtype == DType::kI32)) return constant_bytes(emit, value);
  if (is_byte(value.dtype)) return Bytes{value, 0};
  if (value.dtype != DType::kI32) return std::nullopt;
  Dims symbolic_indices;
  for (size_t i = 0; i < value.rank(); ++i)
    symbolic_indices.push_back(emit.context().dim(emit.context().symbol(fmt::format("i{}", i))));
  const auto found = match_centered_byte(value.at(symbolic_indices));
  if (!found) return std::nullopt;
  // Bytes that memory already stores in this order need no copy.
  const auto* load = std::get_if<loop::Load>(&found->byte->form);
  if (load && load->indices == symbolic_indices)
    return Bytes{emit.from_buffer(load->buffer, value.dims, found->byte->dtype), found->zero};
  return Bytes{emit.expression(value.dims, found->byte->dtype,
                               [value, dtype = found->byte->dtype, zero = found->zero](const Dims& at) {
                                 const Expr element = value.at(at);
                                 const auto match = match_centered_byte(element);
                                 if (match && match->zero == zero && match->byte->dtype == dtype) return match->byte;
                                 // An expression of another form has the same value, computed in i32.
                                 return loop::convert(dtype, element + like(element, static_cast<double>(zero)));
                               }),
               found->zero};
}

Bytes as_signed(Emitter& emit, const Bytes& value) {
  if (value.bytes.dtype == DType::kI8) return value;
  return {flip_signedness(emit, value.bytes), value.zero - 128};
}

DotOperands dot_operands(Emitter& emit, const Bytes& left, const Bytes& right, size_t right_axis,
                         std::span<const Dim> rows) {
  const Machine& machine = emit.machine();
  if (machine.threads > 0) {
    return {.left = emit.stored("rows", left.bytes),
            .right = emit.stored("columns", right.bytes),
            .left_zero = left.zero,
            .right_zero = right.zero,
            .dot = BinaryOp::kMultiply,
            .word = 1};
  }
  const Bytes x = as_unsigned(emit, left), w = as_signed(emit, right);
  const bool saturates = !machine.dot && machine.byte_pairs && has_small_pairs(w.bytes, right_axis);
  if (!machine.dot && machine.int16_pairs && !saturates && fits_int16(left) && fits_int16(right) &&
      selects_int16(emit, right, rows))
    return {.left = centered(emit, left), .right = centered(emit, right), .dot = BinaryOp::kInt16Dot, .word = 2};
  return {.left = x.bytes,
          .right = w.bytes,
          .left_zero = x.zero,
          .right_zero = w.zero,
          .dot = saturates ? BinaryOp::kByteDotSaturating : BinaryOp::kByteDot};
}

Expr pack_word(const std::vector<Expr>& elements) {
  const DType bits = elements[0]->dtype == DType::kI16 ? DType::kU16 : DType::kU8;
  Expr packed;
  for (size_t i = 0; i < elements.size(); ++i) {
    Expr element = loop::convert(DType::kI32, loop::convert(bits, elements[i]));
    const auto shift = static_cast<int64_t>(i * 32 / elements.size());
    if (i > 0) element = loop::binary(BinaryOp::kShiftLeft, element, loop::integer_literal(DType::kI32, shift));
    packed = packed ? loop::binary(BinaryOp::kBitOr, packed, element) : element;
  }
  return packed;
}

LazyTensor pack_words(Emitter& emit, const LazyTensor& elements, size_t axis) {
  Context& context = emit.context();
  const auto bytes = static_cast<int64_t>(runtime::bytes(elements.dtype)), word = 4 / bytes;
  if (elements.constant) {
    runtime::Shape shape = elements.constant->shape();
    const int64_t length = shape[axis], count = (length + word - 1) / word;
    const auto [before, after] = elements_around(shape, axis);
    shape[axis] = count;
    Tensor result(DType::kI32, shape);
    const std::byte* from = elements.constant->bytes().data();
    std::byte* to = result.bytes().data();
    for (int64_t i = 0; i < before; ++i) {
      if (after == 1) std::copy_n(from + i * length * bytes, length * bytes, to + 4 * i * count);
      for (int64_t k = 0; k < length && after > 1; ++k) {
        const std::byte* row = from + (i * length + k) * after * bytes;
        std::byte* words = to + 4 * (i * count + k / word) * after + k % word * bytes;
        for (int64_t j = 0; j < after; ++j) std::copy_n(row + j * bytes, bytes, words + 4 * j);
      }
    }
    return emit.constant(result);
  }
  Dims dims = elements.dims;
  const auto length = elements.dims[axis].constant();
  dims[axis] = context.ceil_divide(dims[axis], word);
  return emit.expression(dims, DType::kI32, [=, &context](const Dims& at) {
    std::vector<Expr> group;
    for (int64_t i = 0; i < word; ++i) {
      Dims from = at;
      from[axis] = context.add(context.multiply(at[axis], context.dim(word)), context.dim(i));
      const Expr element = elements.at(from);
      const bool is_inside = i == 0 || (length && *length % word == 0);
      group.push_back(is_inside ? element
                                : select(less(loop::index_value(from[axis]), loop::index_value(elements.dims[axis])),
                                         element, like(element, 0)));
    }
    return pack_word(group);
  });
}

LazyTensor sums_along(Emitter& emit, const LazyTensor& bytes, size_t axis) {
  Dims dims = bytes.dims;
  dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
  if (bytes.constant) {
    runtime::Shape shape = bytes.constant->shape();
    const int64_t length = shape[axis];
    const auto [before, after] = elements_around(shape, axis);
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
    Tensor result(DType::kI32, shape);
    const auto add = [&](auto values) {
      int32_t* sums = result.data<int32_t>().data();
      for (int64_t i = 0; i < before; ++i, sums += after) {
        for (int64_t k = 0; k < length; ++k) {
          const auto* row = values.data() + (i * length + k) * after;
          for (int64_t j = 0; j < after; ++j)
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
