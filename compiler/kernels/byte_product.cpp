#include "compiler/kernels/byte_product.h"

#include <array>

#include "compiler/kernels/bytes.h"
#include "compiler/kernels/pack.h"
#include "compiler/kernels/product.h"

namespace tenon::compiler::kernels {
namespace {

// Rows of u8 in memory whose lengths are multiples of 4: the tensor itself where it already has this layout, else a
// copy padded with zeros.
LazyTensor padded_rows(Emitter& emit, const LazyTensor& bytes) {
  Context& context = emit.context();
  const int64_t terms = *bytes.dims.back().constant();
  Dims origin(bytes.rank(), context.dim(0)), dims = bytes.dims;
  if (terms % 4 == 0) {
    const bool in_memory = bytes.constant || std::holds_alternative<loop::Load>(bytes.at(origin)->form);
    return in_memory ? bytes : emit.stored("bytes", bytes);
  }
  dims.back() = context.dim((terms + 3) / 4 * 4);
  const LazyTensor rows = emit.overwritten("bytes", dims, loop::integer_literal(DType::kU8, 0));
  emit.overwrite("copy", rows, bytes.dims, [bytes](const Dims& at) { return std::pair(at, bytes.at(at)); });
  return rows;
}

constexpr double kCacheMisses = 1.5;  // estimated slowdown where the inner operand exceeds L2

}  // namespace

std::optional<LazyTensor> byte_product(const OperatorCall& op, std::string_view name, size_t terms_axis,
                                       size_t columns_axis) {
  Emitter& emit = op.emit;
  Context& context = op.context();
  const LazyTensor &x = op.arg(0), &w = op.arg(1);
  const auto terms = x.dims.back().constant();
  if (op.dtype() != DType::kI32 || !terms || *terms == 0 || w.dims[columns_axis].constant() == 0) return std::nullopt;
  auto left = as_bytes(emit, x), right = as_bytes(emit, w);
  if (!left || !right) return std::nullopt;
  left = as_unsigned(emit, *left), right = as_signed(emit, *right);

  const size_t rank = op.dims().size();
  const Dims batch(op.dims().begin(), op.dims().end() - 2);
  const Dim rows_dim = x.dims[x.rank() - 2];
  const Dim columns_dim = w.dims[columns_axis];
  const int64_t lanes = lanes_of(DType::kI32);
  const TileShape shape = tile_of(op, rows_dim, columns_dim, true);
  const LazyTensor rows = padded_rows(emit, left->bytes);
  // Where the four bytes of a pack are contiguous, they are packed into a stored tensor first, so that the panels below
  // gather packs, not bytes, from strided rows.
  LazyTensor packed_terms = pack_int8x4(emit, right->bytes, terms_axis);
  if (!packed_terms.constant && terms_axis + 1 == w.rank()) packed_terms = emit.stored("packed_terms", packed_terms);
  const LazyTensor packed = pack(emit, packed_terms, columns_axis, lanes_of(DType::kI32));
  // The zero points contribute one term for each column and one for each row.
  std::optional<LazyTensor> column_corrections, row_corrections;
  if (left->zero != 0) column_corrections = sums_along(emit, right->bytes, terms_axis);
  if (right->zero != 0) row_corrections = sums_along(emit, left->bytes, x.rank() - 1);
  const auto constant = [](int64_t value) { return loop::integer_literal(DType::kI32, static_cast<int32_t>(value)); };

  // The indices of an operand's matrix within the batch; dims of 1 are broadcast.
  const auto matrix = [&context](const LazyTensor& value, const Dims& from) {
    Dims indices(from.end() - static_cast<ptrdiff_t>(value.rank() - 2), from.end());
    for (size_t i = 0; i < indices.size(); ++i) {
      if (value.dims[i].constant() == 1) indices[i] = context.dim(0);
    }
    return indices;
  };
  const TileAxis columns_tile{TileAxis::Role::kLanes, columns_dim, shape.vectors * lanes},
      rows_tile{TileAxis::Role::kRows, rows_dim, shape.rows};
  // Each iteration of the outer loop reads the inner operand again: the columns are inner only where L2 holds them.
  const int64_t l2_elements = elements_in(emit.machine().l2_bytes);
  const auto elements = [&](Dim size) { return size.constant().value_or(l2_elements) * ((*terms + 3) / 4); };
  const bool tall = elements(columns_dim) <= l2_elements && elements(rows_dim) > l2_elements;
  const bool rows_first =
      emit.choose_option("outer", {{"columns", tall ? kCacheMisses : 1}, {"rows", tall ? 1 : kCacheMisses}}) == 1;
  const size_t row = batch.size() + (rows_first ? 0 : 1), column = batch.size() + (rows_first ? 1 : 0);
  Tiles tiles;
  for (const Dim size : batch) tiles.axes.push_back({TileAxis::Role::kOuter, size, 1});
  tiles.axes.push_back(rows_first ? rows_tile : columns_tile),
      tiles.axes.push_back(rows_first ? columns_tile : rows_tile);
  tiles.over = {context.dim((*terms + 3) / 4)};
  tiles.term = [=, &context](const std::vector<TileIndex>& tile, const Dims& k) {
    Dims outer;
    for (size_t i = 0; i < row && i < column; ++i) outer.push_back(tile[i].index);
    std::array<Expr, 4> bytes;
    for (int64_t b = 0; b < 4; ++b) {
      Dims at = matrix(x, outer);
      at.push_back(tile[row].index);
      at.push_back(context.add(context.multiply(k[0], context.dim(4)), context.dim(b)));
      bytes[static_cast<size_t>(b)] = rows.at(at);
    }
    Dims at = matrix(w, outer);
    at.insert(at.begin(), tile[column].block);
    at.push_back(k[0]), at.push_back(tile[column].inner);
    return loop::binary(BinaryOp::kByteDot, pack_bytes(bytes), packed.at(at));
  };
  tiles.result_index = [=](const Dims& at) {
    Dims index(at.begin(), at.end() - 2);
    index.push_back(at[row]), index.push_back(at[column]);
    return index;
  };
  const LazyTensor sums = emit.contract(name, op.dims(), op.dtype(), std::move(tiles));
  if (!column_corrections && !row_corrections) return sums;
  return emit.expression(op.dims(), DType::kI32, [=](const Dims& at) {
    const Dims outer(at.begin(), at.end() - 2);
    Expr sum = sums.at(at);
    if (column_corrections) {
      Dims column = matrix(w, outer);
      column.push_back(at[rank - 1]);
      sum = sum - column_corrections->at(column) * constant(left->zero);
    }
    if (row_corrections) {
      Dims row = matrix(x, outer);
      row.push_back(at[rank - 2]);
      sum = sum - row_corrections->at(row) * constant(right->zero);
    }
    if (column_corrections && row_corrections) sum = sum + constant(left->zero * right->zero * *terms);
    return sum;
  });
}

}  // namespace tenon::compiler::kernels
