// Matrix products and sums of products.
#include "compiler/kernels/byte_product.h"
#include "compiler/kernels/einsum.h"
#include "compiler/kernels/pack.h"
#include "compiler/kernels/product.h"

namespace tenon::compiler::kernels {
namespace {

LoweredResults dense(const OperatorCall& op) {
  if (auto bytes = byte_product(op, "dense", 1, 0)) return std::vector{std::move(*bytes)};
  const LazyTensor &x = op.arg(0), &w = op.arg(1);
  const Dim rows = x.dims[0], columns = w.dims[0];
  const TileShape shape = tile_of(op, rows, columns);
  const LazyTensor panels = pack(op.emit, w, 0, lanes_of(op.dtype()));
  return std::vector{multiply(op, "dense", shape,
                              {.batch = {},
                               .rows = rows,
                               .columns = columns,
                               .terms = {x.dims[1]},
                               .term = [x, panels](const Dims&, Dim i, const Dims& k, const TileIndex& j) {
                                 return factor(x.at({i, k[0]})) * factor(panels.at({j.block, k[0], j.inner}));
                               }})};
}

LoweredResults matmul(const OperatorCall& op) {
  Context& context = op.context();
  const LazyTensor &a = op.arg(0), &b = op.arg(1);
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
  Product product{.batch = Dims(op.dims().begin(), op.dims().end() - 2),
                  .rows = op.dims()[rank - 2],
                  .columns = op.dims()[rank - 1],
                  .terms = {a.dims.back()},
                  .term = [=](const Dims& batch, Dim i, const Dims& k, const TileIndex& j) {
                    return read(a, batch, i, k[0]) * read(b, batch, k[0], j.index);
                  }};
  const TileShape shape = tile_of(op, product.rows, product.columns);
  // The columns are packed into panels where they are constants, or where their number is not proved to be a multiple
  // of the vector; else where enough rows read the panels to repay the copy.
  if (b.constant || packs_columns(op, product.rows, product.columns)) {
    const LazyTensor panels = pack(op.emit, b, b.rank() - 1, lanes_of(op.dtype()));
    product.term = [=, &context](const Dims& batch, Dim i, const Dims& k, const TileIndex& j) {
      Dims at{j.block};
      at.insert(at.end(), batch.end() - static_cast<ptrdiff_t>(b.rank() - 2), batch.end());
      for (size_t d = 0; d + 2 < b.rank(); ++d) {
        if (b.dims[d].constant() == 1) at[1 + d] = context.dim(0);
      }
      at.push_back(k[0]), at.push_back(j.inner);
      return read(a, batch, i, k[0]) * factor(panels.at(at));
    };
  }
  return std::vector{multiply(op, "matmul", shape, product)};
}

}  // namespace

std::span<const Lowering> contraction_lowerings() {
  static constexpr Lowering kLowerings[] = {{ops::kDense, dense}, {ops::kMatmul, matmul}, {ops::kEinsum, einsum}};
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
