#include "compiler/kernels/byte_product.h"

#include "compiler/kernels/bytes.h"
#include "compiler/kernels/pack.h"
#include "compiler/kernels/product.h"

namespace tenon::compiler::kernels {
namespace {

// Rows of u8 in memory, in whole words: themselves where they lie so, else a copy.
Value rows_of(Emitter& emit, const Value& bytes) {
  Context& context = emit.context();
  const int64_t terms = *bytes.dims.back().constant();
  Dims anywhere(bytes.rank(), context.dim(0)), dims = bytes.dims;
  if (terms % 4 == 0) {
    const bool lie = bytes.constant || std::holds_alternative<loop::Load>(bytes.at(anywhere)->form);
    return lie ? bytes : emit.stored("bytes", bytes);
  }
  dims.back() = context.dim((terms + 3) / 4 * 4);
  const Value rows = emit.overwritten("bytes", dims, loop::integer_literal(DType::kU8, 0));
  emit.overwrite("copy", rows, bytes.dims, [bytes](const Dims& at) { return std::pair(at, bytes.at(at)); });
  return rows;
}

}  // namespace

std::optional<Value> byte_product(const Operation& op, std::string_view name, size_t terms_axis, size_t columns_axis) {
  Emitter& emit = op.emit;
  Context& context = op.context();
  const Value &x = op.arg(0), &w = op.arg(1);
  const auto terms = x.dims.back().constant();
  if (op.dtype() != DType::kI32 || !terms || *terms == 0 || w.dims[columns_axis].constant() == 0) return std::nullopt;
  auto left = as_bytes(emit, x), right = as_bytes(emit, w);
  if (!left || !right) return std::nullopt;
  left = as_unsigned(emit, *left), right = as_signed(emit, *right);

  const size_t rank = op.dims().size();
  const Dims batch(op.dims().begin(), op.dims().end() - 2);
  const Dim rows_dim = x.dims[x.rank() - 2];
  const TileShape shape = tile_of(op, rows_dim, w.dims[columns_axis]);
  const Value rows = rows_of(emit, left->bytes);
  // Bytes that a word takes from one place are brought together first, and words afterwards from far apart.
  Value word = words(emit, right->bytes, terms_axis);
  if (!word.constant && terms_axis + 1 == w.rank()) word = emit.stored("words", word);
  const Value packed = pack(emit, word, columns_axis, shape.vectors * 16);
  // What the zeros add to the sums: a number for each column and one for each row.
  std::optional<Value> of_columns, of_rows;
  if (left->zero != 0) of_columns = sums_along(emit, right->bytes, terms_axis);
  if (right->zero != 0) of_rows = sums_along(emit, left->bytes, x.rank() - 1);
  const auto number = [](int64_t value) { return loop::integer_literal(DType::kI32, static_cast<int32_t>(value)); };

  // The matrix of an operand for indices of the batch; a dim of 1 is repeated.
  const auto matrix = [&context](const Value& value, const Dims& from) {
    Dims own(from.end() - static_cast<ptrdiff_t>(value.rank() - 2), from.end());
    for (size_t i = 0; i < own.size(); ++i) {
      if (value.dims[i].constant() == 1) own[i] = context.dim(0);
    }
    return own;
  };
  Product product{.batch = batch,
                  .rows = rows_dim,
                  .columns = w.dims[columns_axis],
                  .terms = {context.dim((*terms + 3) / 4)},
                  .term = [=, &context](const Dims& outer, Dim i, const Dims& k, const TileIndex& j) {
                    std::array<Expr, 4> four;
                    for (int64_t b = 0; b < 4; ++b) {
                      Dims at = matrix(x, outer);
                      at.push_back(i);
                      at.push_back(context.add(context.multiply(k[0], context.dim(4)), context.dim(b)));
                      four[static_cast<size_t>(b)] = rows.at(at);
                    }
                    Dims at = matrix(w, outer);
                    at.insert(at.begin(), j.block);
                    at.push_back(k[0]), at.push_back(j.inner);
                    return loop::binary(BinaryOp::kByteDot, word_of(four), packed.at(at));
                  }};
  const Value sums = multiply(op, name, shape, product);
  if (!of_columns && !of_rows) return sums;
  return emit.expression(op.dims(), DType::kI32, [=](const Dims& at) {
    const Dims outer(at.begin(), at.end() - 2);
    Expr sum = sums.at(at);
    if (of_columns) {
      Dims column = matrix(w, outer);
      column.push_back(at[rank - 1]);
      sum = sum - of_columns->at(column) * number(left->zero);
    }
    if (of_rows) {
      Dims row = matrix(x, outer);
      row.push_back(at[rank - 2]);
      sum = sum - of_rows->at(row) * number(right->zero);
    }
    if (of_columns && of_rows) sum = sum + number(left->zero * right->zero * *terms);
    return sum;
  });
}

}  // namespace tenon::compiler::kernels
