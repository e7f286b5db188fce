// Batching rules of dense layers and matrix products.
#include <algorithm>

#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

// Shared weights multiply the rows of all instances at once; weights of each instance are a product an instance.
Status dense(BatchBuilder& b) {
  if (b.own(1)) return b.finish(matmul(b.arg(0), b.arg(1).swap_last_axes()));
  return of_rows(b);
}

// A shared matrix on the right multiplies the rows of all instances at once; other products are one an instance.
Status product(BatchBuilder& b) {
  const Term &x = b.arg(0), &w = b.arg(1);
  const Dims dims = x.dims();
  if (!b.own(1) && b.rank(1) == 2 && b.ok()) {
    Context& context = b.builder().context();
    const Dim rows = context.product(Dims(dims.begin(), dims.end() - 1));
    return b.finish(b.reshaped(b.apply_to({b.reshaped(x, {rows, dims.back()}), w}), b.result_dims()));
  }
  const int64_t rank = std::max(b.rank(0), b.rank(1));
  return b.finish(b.apply_to({b.of_rank(0, rank), b.of_rank(1, rank)}));
}

// Rows of the left operand are rows of the result, and so are the batches of both operands.
bool rows_of_product(const RowsInput& input) {
  if (!input.own[0]) return false;
  if (input.own[1]) return input.rank(0) == input.rank(1) && input.axes <= input.rank(1) - 2;
  return input.rank(1) == 2 && input.axes < input.rank(0);
}
bool rows_of_dense(const RowsInput& input) {
  return input.own[0] && std::ranges::count(input.own, true) == 1 && input.axes < input.rank(0);
}

constexpr BatchingRow kContraction[] = {
    {ops::kDense, {dense, rows_of_dense}},
    {ops::kMatmul, {product, rows_of_product}},
    {ops::kDet, elementwise},
};

}  // namespace

std::span<const BatchingRow> contraction_batching() { return kContraction; }

}  // namespace tenon::compiler::batching
