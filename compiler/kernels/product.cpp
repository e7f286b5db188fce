#include "compiler/kernels/product.h"

#include <algorithm>

namespace tenon::compiler::kernels {

Value multiply(const Operation& op, std::string_view name, const TileShape& shape, const Product& product) {
  Tiles tiles;
  for (const Dim size : product.batch) tiles.axes.push_back({TileAxis::Role::kOuter, size, 1});
  const size_t batch = product.batch.size();
  tiles.axes.push_back({TileAxis::Role::kLanes, product.columns, shape.vectors * lanes_of(op.dtype())});
  tiles.axes.push_back({TileAxis::Role::kRows, product.rows, shape.rows});
  tiles.over = {product.terms};
  tiles.term = [batch, term = product.term](const std::vector<TileIndex>& at, const Dims& k) {
    Dims outer;
    for (size_t i = 0; i < batch; ++i) outer.push_back(at[i].index);
    return term(outer, at[batch + 1].index, k[0], at[batch]);
  };
  tiles.place = [=](const Dims& at) {
    Dims place(at.begin(), at.begin() + static_cast<ptrdiff_t>(batch));
    place.push_back(at[batch + 1]);
    place.push_back(at[batch]);
    return place;
  };
  return op.emit.contract(name, op.dims(), op.dtype(), std::move(tiles));
}

TileShape tile_of(const Operation& op, Dim rows, Dim columns) {
  const int64_t vector = lanes_of(op.dtype());
  return choose_tile(rows.constant().value_or(0), std::max<int64_t>(columns.constant().value_or(2 * vector), 1),
                     vector);
}

}  // namespace tenon::compiler::kernels
