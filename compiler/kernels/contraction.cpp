// Matrix products and sums of products.
#include "compiler/kernels/byte_product.h"
#include "compiler/kernels/einsum.h"
#include "compiler/kernels/pack.h"
#include "compiler/kernels/product.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

// i8 sums up in i32, the others in their own dtype.
Expr factor(const Expr& x) { return loop::convert(x->dtype == DType::kI8 ? DType::kI32 : x->dtype, x); }

Values dense(const Operation& op) {
  if (auto bytes = byte_product(op, "dense", 1, 0)) return std::vector{std::move(*bytes)};
  const Value &x = op.arg(0), &w = op.arg(1);
  const Dim rows = x.dims[0], columns = w.dims[0];
  const TileShape shape = tile_of(op, rows, columns);
  const Value packed = pack(op.emit, w, 0, shape.vectors * lanes_of(op.dtype()));
  return std::vector{multiply(op, "dense", shape,
                              {.batch = {},
                               .rows = rows,
                               .columns = columns,
                               .terms = {x.dims[1]},
                               .term = [x, packed](const Dims&, Dim i, const Dims& k, const TileIndex& j) {
                                 return factor(x.at({i, k[0]})) * factor(packed.at({j.block, k[0], j.inner}));
                               }})};
}

Values matmul(const Operation& op) {
  Context& context = op.context();
  const Value &a = op.arg(0), &b = op.arg(1);
  const size_t rank = op.dims().size();
  if (auto bytes = byte_product(op, "matmul", b.rank() - 2, b.rank() - 1)) return std::vector{std::move(*bytes)};
  // An operand's matrix for indices of the batch; a dim of 1 is repeated.
  const auto read = [&context](const Value& value, const Dims& batch, Dim row, Dim column) {
    Dims own(batch.end() - static_cast<ptrdiff_t>(value.rank() - 2), batch.end());
    for (size_t i = 0; i < own.size(); ++i) {
      if (value.dims[i].constant() == 1) own[i] = context.dim(0);
    }
    own.push_back(row), own.push_back(column);
    return factor(value.at(own));
  };
  Product product{.batch = Dims(op.dims().begin(), op.dims().end() - 2),
                  .rows = op.dims()[rank - 2],
                  .columns = op.dims()[rank - 1],
                  .terms = {a.dims.back()},
                  .term = [=](const Dims& batch, Dim i, const Dims& k, const TileIndex& j) {
                    return read(a, batch, i, k[0]) * read(b, batch, k[0], j.index);
                  }};
  const TileShape shape = tile_of(op, product.rows, product.columns);
  // Columns are copied side by side where they are constants, or not known to be whole vectors; others where so many
  // rows read them that this is repaid.
  if (b.constant || packs_columns(op, product.rows, product.columns)) {
    const Value packed = pack(op.emit, b, b.rank() - 1, shape.vectors * lanes_of(op.dtype()));
    product.term = [=, &context](const Dims& batch, Dim i, const Dims& k, const TileIndex& j) {
      Dims at{j.block};
      at.insert(at.end(), batch.end() - static_cast<ptrdiff_t>(b.rank() - 2), batch.end());
      for (size_t d = 0; d + 2 < b.rank(); ++d) {
        if (b.dims[d].constant() == 1) at[1 + d] = context.dim(0);
      }
      at.push_back(k[0]), at.push_back(j.inner);
      return read(a, batch, i, k[0]) * factor(packed.at(at));
    };
  }
  return std::vector{multiply(op, "matmul", shape, product)};
}

}  // namespace

std::span<const Lowering> contraction_lowerings() {
  static constexpr Lowering kLowerings[] = {{"dense", dense}, {"matmul", matmul}, {"einsum", einsum}};
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
