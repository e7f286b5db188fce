// Matrix products in tiles, whatever the term of a sum is.
#pragma once

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// The sum over k of term(batch, i, k, j): of the row i and the column j of each matrix of the batch.
struct Product {
  Dims batch;
  Dim rows, columns, terms;
  std::function<Expr(const Dims& batch, Dim i, Dim k, const TileIndex& j)> term;
};
Value multiply(const Operation& op, std::string_view name, const TileShape& shape, const Product& product);

// The tile for a product of the operator's result type.
TileShape tile_of(const Operation& op, Dim rows, Dim columns);

}  // namespace tenon::compiler::kernels
