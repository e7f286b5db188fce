// Matrix products in register tiles with arbitrary terms.
#pragma once

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// A factor of a product in the type of the sum: i32 for i8, else the operand's own type.
inline Expr factor(const Expr& x) { return loop::convert(x->dtype == DType::kI8 ? DType::kI32 : x->dtype, x); }

// For row i and column j of each matrix of the batch the sum over k of term(batch, i, k, j).
struct Product {
  Dims batch;
  Dim rows, columns;
  Dims terms;
  std::function<Expr(const Dims& batch, Dim i, const Dims& k, const TileIndex& j)> term;
  // Where the result is not [batch, rows, columns]: its dims, and its indices from [batch, row, column].
  Dims dims = {};
  std::function<Dims(const Dims& at)> result_index = nullptr;
};
LazyTensor multiply(const OperatorCall& op, std::string_view name, const TileShape& shape, const Product& product);

// Whether the columns of a matrix that is not constant are packed into panels first: always where they are not whole
// vectors, else the knob "weights".
bool packs_columns(const OperatorCall& op, Dim rows, Dim columns);

// The tile for a product of the operator's result type, by the knob "tile". `bytes`: its terms are
// dot products of bytes.
TileShape tile_of(const OperatorCall& op, Dim rows, Dim columns, bool bytes = false);

}  // namespace tenon::compiler::kernels
