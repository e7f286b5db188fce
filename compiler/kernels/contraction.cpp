// Matrix products and sums of products.
#include <map>

#include "compiler/kernels/lowerings.h"
#include "compiler/kernels/pack.h"
#include "runtime/reference/einsum.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

// i8 sums up in i32, the others in their own dtype.
Expr factor(const Expr& x) { return loop::convert(x->dtype == DType::kI8 ? DType::kI32 : x->dtype, x); }

// The sum over k of left(batch, i, k) * right(batch, k, j, block of j and place in it), in tiles.
struct Product {
  Dims batch;
  Dim rows, columns, terms;
  std::function<Expr(const Dims& batch, Dim i, Dim k)> left;
  std::function<Expr(const Dims& batch, Dim k, const TileIndex& j)> right;
};

Value multiply(const Operation& op, std::string_view name, const TileShape& shape, const Product& product) {
  Tiles tiles;
  for (const Dim size : product.batch) tiles.axes.push_back({TileAxis::Role::kOuter, size, 1});
  const size_t batch = product.batch.size();
  tiles.axes.push_back({TileAxis::Role::kLanes, product.columns, shape.vectors * lanes_of(op.dtype())});
  tiles.axes.push_back({TileAxis::Role::kRows, product.rows, shape.rows});
  tiles.over = {product.terms};
  tiles.term = [=](const std::vector<TileIndex>& at, const Dims& k) {
    Dims outer;
    for (size_t i = 0; i < batch; ++i) outer.push_back(at[i].index);
    return product.left(outer, at[batch + 1].index, k[0]) * product.right(outer, k[0], at[batch]);
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
  return choose_tile(op.emit, rows.constant().value_or(0),
                     std::max<int64_t>(columns.constant().value_or(2 * vector), 1), vector);
}

Values dense(const Operation& op) {
  const Value &x = op.arg(0), &w = op.arg(1);
  const Dim rows = x.dims[0], columns = w.dims[0];
  if (!columns.constant()) {
    return std::vector{op.emit.reduce("dense", {.dims = op.dims(), .over = {x.dims[1]}, .term = [=](const Dims& at) {
                                                  return factor(x.at({at[0], at[2]})) * factor(w.at({at[1], at[2]}));
                                                }})};
  }
  const TileShape shape = tile_of(op, rows, columns);
  const Value packed = pack(op.emit, w, 0, shape.vectors * lanes_of(op.dtype()));
  return std::vector{multiply(op, "dense", shape,
                              {.batch = {},
                               .rows = rows,
                               .columns = columns,
                               .terms = x.dims[1],
                               .left =
                                   [x](const Dims&, Dim i, Dim k) {
                                     return factor(x.at({i, k}));
                                   },
                               .right =
                                   [packed](const Dims&, Dim k, const TileIndex& j) {
                                     return factor(packed.at({j.block, k, j.inner}));
                                   }})};
}

Values matmul(const Operation& op) {
  Context& context = op.context();
  const Value &a = op.arg(0), &b = op.arg(1);
  const size_t rank = op.dims().size();
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
                  .terms = a.dims.back(),
                  .left = [=](const Dims& batch, Dim i, Dim k) { return read(a, batch, i, k); },
                  .right = [=](const Dims& batch, Dim k, const TileIndex& j) { return read(b, batch, k, j.index); }};
  const TileShape shape = tile_of(op, product.rows, product.columns);
  // Columns are copied side by side where they are constants, read by many rows, or no whole vectors.
  const auto columns = product.columns.constant();
  if (!columns) {
    return std::vector{op.emit.reduce(
        "matmul", {.dims = op.dims(), .over = {product.terms}, .term = [=](const Dims& at) {
                     const Dims batch(at.begin(), at.end() - 3);
                     return product.left(batch, at[rank - 2], at[rank]) * read(b, batch, at[rank], at[rank - 1]);
                   }})};
  }
  if (b.constant || product.rows.constant().value_or(0) >= 64 || *columns % lanes_of(op.dtype()) != 0) {
    const Value packed = pack(op.emit, b, b.rank() - 1, shape.vectors * lanes_of(op.dtype()));
    product.right = [=, &context](const Dims& batch, Dim k, const TileIndex& j) {
      Dims at{j.block};
      at.insert(at.end(), batch.end() - static_cast<ptrdiff_t>(b.rank() - 2), batch.end());
      for (size_t i = 0; i + 2 < b.rank(); ++i) {
        if (b.dims[i].constant() == 1) at[1 + i] = context.dim(0);
      }
      at.push_back(k), at.push_back(j.inner);
      return factor(packed.at(at));
    };
  }
  return std::vector{multiply(op, "matmul", shape, product)};
}

Values einsum(const Operation& op) {
  std::vector<int64_t> ranks;
  for (const Value& arg : op.args) ranks.push_back(static_cast<int64_t>(arg.rank()));
  auto parsed = runtime::reference::Einsum::parse(op.text("equation"), ranks);
  if (!parsed) return std::unexpected(parsed.error());
  std::map<char, Dim> sizes;
  for (size_t n = 0; n < op.args.size(); ++n) {
    for (size_t d = 0; d < parsed->inputs[n].size(); ++d) sizes[parsed->inputs[n][d]] = op.arg(n).dims[d];
  }
  const std::string summed = parsed->summed();
  Dims over;
  for (const char axis : summed) over.push_back(sizes[axis]);
  const std::string axes = parsed->output + summed;
  const auto product = [args = op.args, inputs = parsed->inputs, axes](const Dims& at) {
    Expr result;
    for (size_t n = 0; n < args.size(); ++n) {
      Dims own;
      for (const char axis : inputs[n]) own.push_back(at[axes.find(axis)]);
      const Expr one = args[n].at(own);
      result = result ? result * one : one;
    }
    return result;
  };
  if (over.empty()) return op.expression(product);
  return std::vector{op.emit.reduce("einsum", {.dims = op.dims(), .over = over, .term = product})};
}

}  // namespace

std::span<const Lowering> contraction_lowerings() {
  static constexpr Lowering kLowerings[] = {{"dense", dense}, {"matmul", matmul}, {"einsum", einsum}};
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
