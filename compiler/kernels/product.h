// Matrix products in tiles, whatever the term of a sum is.
#pragma once

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// The sum over k of term(batch, i, k, j): of the row i and the column j of each matrix of the batch.
struct Product {
  Dims batch;
  Dim rows, columns;
  Dims terms;
  std::function<Expr(const Dims& batch, Dim i, const Dims& k, const TileIndex& j)> term;
  // A result that is not [batch, rows, columns]: its dims, and where in it the element at these indices is.
  Dims dims = {};
  std::function<Dims(const Dims& at)> place = nullptr;
};
Value multiply(const Operation& op, std::string_view name, const TileShape& shape, const Product& product);

// Whether columns that are no constants are copied side by side first: a decision, unless they are no whole vectors.
bool packs_columns(const Operation& op, Dim rows, Dim columns);

// The tile for a product of the operator's result type.
TileShape tile_of(const Operation& op, Dim rows, Dim columns);

}  // namespace tenon::compiler::kernels
