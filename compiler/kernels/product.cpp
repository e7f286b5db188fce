#include "compiler/kernels/product.h"

#include <algorithm>

namespace tenon::compiler::kernels {
namespace {

constexpr double kCacheMisses = 1.5;         // estimated slowdown where the inner operand exceeds L2
constexpr int64_t kRowsToRepayPacking = 64;  // rows that read the panels

}  // namespace

LazyTensor multiply(const OperatorCall& op, std::string_view name, const TileShape& shape, const Product& product) {
  Tiles tiles;
  for (const Dim size : product.batch) tiles.axes.push_back({TileAxis::Role::kOuter, size, 1});
  const size_t batch = product.batch.size();
  const TileAxis lanes{TileAxis::Role::kLanes, product.columns, shape.vectors * lanes_of(op.dtype())},
      unrolled{TileAxis::Role::kRows, product.rows, shape.rows};
  // Each iteration of the outer loop reads the inner operand again: the columns are inner only where L2 holds them.
  const int64_t l2_elements = elements_in(op.emit.machine().l2_bytes);
  const auto elements = [&](Dim size) {
    return size.constant().value_or(l2_elements) * op.context().product(product.terms).constant().value_or(1);
  };
  const bool tall = elements(product.columns) <= l2_elements && elements(product.rows) > l2_elements;
  const bool rows_first =
      op.emit.choose_option("outer", {{"columns", tall ? kCacheMisses : 1}, {"rows", tall ? 1 : kCacheMisses}}) == 1;
  const size_t row = batch + (rows_first ? 0 : 1), column = batch + (rows_first ? 1 : 0);
  tiles.axes.push_back(rows_first ? unrolled : lanes);
  tiles.axes.push_back(rows_first ? lanes : unrolled);
  tiles.over = product.terms;
  tiles.term = [=, term = product.term](const std::vector<TileIndex>& at, const Dims& k) {
    Dims outer;
    for (size_t i = 0; i < batch; ++i) outer.push_back(at[i].index);
    return term(outer, at[row].index, k, at[column]);
  };
  tiles.result_index = [=, map_index = product.result_index](const Dims& at) {
    Dims index(at.begin(), at.begin() + static_cast<ptrdiff_t>(batch));
    index.push_back(at[row]);
    index.push_back(at[column]);
    return map_index ? map_index(index) : index;
  };
  return op.emit.contract(name, product.result_index ? product.dims : op.dims(), op.dtype(), std::move(tiles));
}

bool packs_columns(const OperatorCall& op, Dim rows, Dim columns) {
  const bool repays_packing = rows.constant().value_or(0) >= kRowsToRepayPacking;
  return columns.constant().value_or(1) % lanes_of(op.dtype()) != 0 ||
         op.emit.choose_option("weights",
                               {{"in_place", repays_packing ? 2.0 : 1.0}, {"packed", repays_packing ? 1.0 : 2.0}}) == 1;
}

TileShape tile_of(const OperatorCall& op, Dim rows, Dim columns, bool bytes) {
  const int64_t vector = lanes_of(op.dtype());
  return choose_tile(op.emit, rows.constant().value_or(0),
                     std::max<int64_t>(columns.constant().value_or(2 * vector), 1), vector,
                     {.strided_rows = true, .bytes = bytes});
}

}  // namespace tenon::compiler::kernels
