#include "compiler/kernels/byte_product.h"

#include <array>
#include <vector>

#include "compiler/kernels/bytes.h"
#include "compiler/kernels/product.h"

namespace tenon::compiler::kernels {
namespace {

// Rows in memory of whole words: the tensor itself where it already has this layout, else a copy padded with zeros.
LazyTensor padded_rows(Emitter& emit, const LazyTensor& elements, int64_t word) {
  Context& context = emit.context();
  const int64_t terms = *elements.dims.back().constant();
  Dims origin(elements.rank(), context.dim(0)), dims = elements.dims;
  if (terms % word == 0) {
    const bool in_memory = elements.constant || std::holds_alternative<loop::Load>(elements.at(origin)->form);
    return in_memory ? elements : emit.stored("rows", elements);
  }
  dims.back() = context.dim((terms + word - 1) / word * word);
  const LazyTensor rows = emit.overwritten("rows", dims, loop::integer_literal(elements.dtype, 0));
  emit.overwrite("copy", rows, elements.dims, [elements](const Dims& at) { return std::pair(at, elements.at(at)); });
  return rows;
}

}  // namespace

std::optional<LazyTensor> byte_product(const OperatorCall& op, std::string_view name, size_t terms_axis,
                                       size_t columns_axis) {
  Emitter& emit = op.emit;
  Context& context = op.context();
  const LazyTensor &x = op.arg(0), &w = op.arg(1);
  const auto terms = x.dims.back().constant();
  if (op.dtype() != DType::kI32 || !terms || *terms == 0 || w.dims[columns_axis].constant() == 0) return std::nullopt;
  const auto left = as_bytes(emit, x), right = as_bytes(emit, w);
  if (!left || !right) return std::nullopt;
  const DotOperands operands = dot_operands(emit, *left, *right, terms_axis, std::array{x.dims[x.rank() - 2]});
  const int64_t word = operands.word, left_zero = operands.left_zero, right_zero = operands.right_zero;

  const size_t rank = op.dims().size();
  const Dims batch(op.dims().begin(), op.dims().end() - 2);
  const Dim rows_dim = x.dims[x.rank() - 2];
  const Dim columns_dim = w.dims[columns_axis];
  const LazyTensor rows = padded_rows(emit, operands.left, word);
  LazyTensor packed_terms =
      word == 1 ? operands.right : emit.stored("packed_terms", pack_words(emit, operands.right, terms_axis));
  // Where the elements of a word are contiguous, the panels, which the template makes of the last copy, gather words,
  // not bytes, from strided rows.
  if (word > 1 && !packed_terms.constant && terms_axis + 1 == w.rank()) {
    packed_terms = emit.stored("columns", emit.expression(packed_terms.dims, DType::kI32, packed_terms.at));
  }
  // The zero points contribute one term for each column and one for each row.
  std::optional<LazyTensor> column_corrections, row_corrections;
  if (left_zero != 0) column_corrections = sums_along(emit, operands.right, terms_axis);
  if (right_zero != 0) row_corrections = sums_along(emit, operands.left, x.rank() - 1);
  const auto constant = [](int64_t value) { return loop::integer_literal(DType::kI32, static_cast<int32_t>(value)); };

  // The indices of an operand's matrix within the batch; dims of 1 are broadcast.
  const auto matrix = [&context](const LazyTensor& value, const Dims& from) {
    Dims indices(from.end() - static_cast<ptrdiff_t>(value.rank() - 2), from.end());
    for (size_t i = 0; i < indices.size(); ++i) {
      if (value.dims[i].constant() == 1) indices[i] = context.dim(0);
    }
    return indices;
  };
  const auto term = [=, &context](const Dims& outer, Dim i, const Dims& k, Dim j) {
    std::vector<Expr> elements;
    for (int64_t b = 0; b < word; ++b) {
      Dims at = matrix(x, outer);
      at.push_back(i), at.push_back(context.add(context.multiply(k[0], context.dim(word)), context.dim(b)));
      elements.push_back(rows.at(at));
    }
    Dims at = matrix(w, outer);
    at.push_back(k[0]);
    at.insert(at.begin() + static_cast<ptrdiff_t>(columns_axis), j);
    if (word == 1) return factor(elements[0]) * factor(packed_terms.at(at));
    return loop::binary(operands.dot, pack_word(elements), packed_terms.at(at));
  };
  const LazyTensor sums = multiply(op, name,
                                   {.batch = batch,
                                    .rows = rows_dim,
                                    .columns = columns_dim,
                                    .terms = {context.dim((*terms + word - 1) / word)},
                                    .term = term,
                                    .panels = packed_terms});
  if (!column_corrections && !row_corrections) return sums;
  return emit.expression(op.dims(), DType::kI32, [=](const Dims& at) {
    const Dims outer(at.begin(), at.end() - 2);
    Expr sum = sums.at(at);
    if (column_corrections) {
      Dims column = matrix(w, outer);
      column.push_back(at[rank - 1]);
      sum = sum - column_corrections->at(column) * constant(left_zero);
    }
    if (row_corrections) {
      Dims row = matrix(x, outer);
      row.push_back(at[rank - 2]);
      sum = sum - row_corrections->at(row) * constant(right_zero);
    }
    if (column_corrections && row_corrections) sum = sum + constant(left_zero * right_zero * *terms);
    return sum;
  });
}

}  // namespace tenon::compiler::kernels
