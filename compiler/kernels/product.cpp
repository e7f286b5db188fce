#include "compiler/kernels/product.h"

#include <algorithm>

namespace tenon::compiler::kernels {
namespace {

constexpr double kMisses = 1.5;    // times longer, where it does not, at a guess
constexpr int64_t kManyRows = 64;  // that repay a copy of what they all read

}  // namespace

Value multiply(const Operation& op, std::string_view name, const TileShape& shape, const Product& product) {
  Tiles tiles;
  for (const Dim size : product.batch) tiles.axes.push_back({TileAxis::Role::kOuter, size, 1});
  const size_t batch = product.batch.size();
  const TileAxis lanes{TileAxis::Role::kLanes, product.columns, shape.vectors * lanes_of(op.dtype())},
      unrolled{TileAxis::Role::kRows, product.rows, shape.rows};
  // The inner one is read again for each step of the outer one: columns, where the cache holds them all.
  const auto words = [&](Dim size) {
    return size.constant().value_or(kCacheWords) * op.context().product(product.terms).constant().value_or(1);
  };
  const bool tall = words(product.columns) <= kCacheWords && words(product.rows) > kCacheWords;
  const bool rows_first = op.emit.decide("outer", {{"columns", tall ? kMisses : 1}, {"rows", tall ? 1 : kMisses}}) == 1;
  const size_t row = batch + (rows_first ? 0 : 1), column = batch + (rows_first ? 1 : 0);
  tiles.axes.push_back(rows_first ? unrolled : lanes);
  tiles.axes.push_back(rows_first ? lanes : unrolled);
  tiles.over = product.terms;
  tiles.term = [=, term = product.term](const std::vector<TileIndex>& at, const Dims& k) {
    Dims outer;
    for (size_t i = 0; i < batch; ++i) outer.push_back(at[i].index);
    return term(outer, at[row].index, k, at[column]);
  };
  tiles.place = [=, other = product.place](const Dims& at) {
    Dims place(at.begin(), at.begin() + static_cast<ptrdiff_t>(batch));
    place.push_back(at[row]);
    place.push_back(at[column]);
    return other ? other(place) : place;
  };
  return op.emit.contract(name, product.place ? product.dims : op.dims(), op.dtype(), std::move(tiles));
}

bool packs_columns(const Operation& op, Dim rows, Dim columns) {
  const bool many = rows.constant().value_or(0) >= kManyRows;
  return columns.constant().value_or(1) % lanes_of(op.dtype()) != 0 ||
         op.emit.decide("weights", {{"in_place", many ? 2.0 : 1.0}, {"packed", many ? 1.0 : 2.0}}) == 1;
}

TileShape tile_of(const Operation& op, Dim rows, Dim columns) {
  const int64_t vector = lanes_of(op.dtype());
  return choose_tile(op.emit, rows.constant().value_or(0),
                     std::max<int64_t>(columns.constant().value_or(2 * vector), 1), vector, {.rows = true});
}

}  // namespace tenon::compiler::kernels
