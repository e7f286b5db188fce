// Matrix products and sums of products.
#include "compiler/kernels/byte_product.h"
#include "compiler/kernels/einsum.h"
#include "compiler/kernels/indices.h"
#include "compiler/kernels/product.h"
#include "compiler/kernels/short_floats.h"

namespace tenon::compiler::kernels {
namespace {

LoweredResults dense(const OperatorCall& op) {
  if (auto bytes = byte_product(op, "dense", 1, 0)) return std::vector{std::move(*bytes)};
  const LazyTensor &x = matrix_operand(op.emit, op.arg(0)), &w = matrix_operand(op.emit, op.arg(1));
  const Dim rows = x.dims[0], columns = w.dims[0];
  const auto [columns_first, packed] = columns_of(op, w, rows, columns, false);
  return std::vector{multiply(op, "dense",
                              {.batch = {},
                               .rows = rows,
                               .columns = columns,
                               .terms = {x.dims[1]},
                               .term =
                                   [x, w = columns_first](const Dims&, Dim i, const Dims& k, Dim j) {
                                     return factor(x.at({i, k[0]})) * factor(w.at({j, k[0]}));
                                   },
                               .panels = packed ? std::optional(columns_first) : std::nullopt})};
}

// The product of all rows of a batch and the matrix that they share: blocks of threads have rows of several matrices.
LazyTensor joined_rows(const OperatorCall& op, const LazyTensor& a, const LazyTensor& b, const Dims& all_rows,
                       bool packed) {
  Context& context = op.context();
  const Dim count = context.dim(*product_of(all_rows)), terms = a.dims.back(), columns = op.dims().back();
  const auto element = [=, &context](Dim row, Dim last) {
    Dims at = unravel(context, row, all_rows);
    at.push_back(last);
    return at;
  };
  const LazyTensor rows = op.emit.stored(
      "rows", op.emit.expression({count, terms}, a.dtype, [=](const Dims& at) { return a.at(element(at[0], at[1])); }));
  return multiply(op, "matmul",
                  {.batch = {},
                   .rows = count,
                   .columns = columns,
                   .terms = {terms},
                   .term =
                       [=](const Dims&, Dim i, const Dims& k, Dim j) {
                         return factor(rows.at({i, k[0]})) * factor(b.at({k[0], j}));
                       },
                   .panels = packed ? std::optional(b) : std::nullopt,
                   .dims = op.dims(),
                   .result_index = [=](const Dims& at) { return element(at[0], at[1]); }});
}

LoweredResults matmul(const OperatorCall& op) {
  Context& context = op.context();
  const LazyTensor &a = matrix_operand(op.emit, op.arg(0)), &b = matrix_operand(op.emit, op.arg(1));
  const size_t rank = op.dims().size();
  if (auto bytes = byte_product(op, "matmul", b.rank() - 2, b.rank() - 1)) return std::vector{std::move(*bytes)};
  // An element of an operand's matrix within the batch; dims of 1 are broadcast.
  const auto read = [&context](const LazyTensor& value, const Dims& batch, Dim row, Dim column) {
    Dims indices(batch.end() - static_cast<ptrdiff_t>(value.rank() - 2), batch.end());
    for (size_t i = 0; i < indices.size(); ++i) {
      if (value.dims[i].constant() == 1) indices[i] = context.dim(0);
    }
    indices.push_back(row), indices.push_back(column);
    return factor(value.at(indices));
  };
  const Dim rows = op.dims()[rank - 2], columns = op.dims()[rank - 1];
  const auto [stored, packed] = columns_of(op, b, rows, columns, true);
  const Dims all_rows(op.dims().begin(), op.dims().end() - 1);
  const auto row_count = product_of(all_rows);
  if (op.emit.machine().threads > 0 && rank > 2 && a.rank() == rank && b.rank() == 2 && row_count)
    return std::vector{joined_rows(op, a, stored, all_rows, packed)};
  return std::vector{
      multiply(op, "matmul",
               {.batch = Dims(op.dims().begin(), op.dims().end() - 2),
                .rows = rows,
                .columns = columns,
                .terms = {a.dims.back()},
                .term = [=, b = stored](const Dims& batch, Dim i, const Dims& k,
                                        Dim j) { return read(a, batch, i, k[0]) * read(b, batch, k[0], j); },
                .panels = packed ? std::optional(stored) : std::nullopt})};
}

}  // namespace

std::span<const Lowering> contraction_lowerings() {
  static constexpr Lowering kLowerings[] = {{ops::kDense, dense}, {ops::kMatmul, matmul}, {ops::kEinsum, einsum}};
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
