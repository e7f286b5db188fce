#include "compiler/kernels/implicit_product.h"

#include <utility>

#include "compiler/kernels/bytes.h"
#include "compiler/kernels/indices.h"
#include "compiler/kernels/product.h"
#include "compiler/kernels/short_floats.h"
#include "compiler/schedules/thread_product.h"

namespace tenon::compiler::kernels {
namespace {

constexpr int64_t kFewPixels = 1024;

struct Factors {
  LazyTensor x, w;
  Expr pad;
};

// The operands; as i8 where they are bytes without zero points, or as f16 or bf16, which tensor cores multiply.
Factors factors(const OperatorCall& op, const Expr& pad) {
  const LazyTensor &x = op.arg(0), &w = op.arg(1);
  const int64_t value = op.integer("pad_value");
  if (x.stored_as && w.stored_as) {
    const LazyTensor &left = matrix_operand(op.emit, x), &right = matrix_operand(op.emit, w);
    if (left.dtype == right.dtype) return {left, right, loop::literal(left.dtype, static_cast<double>(value))};
  }
  const auto left = op.dtype() == DType::kI32 ? as_bytes(op.emit, x) : std::nullopt,
             right = left ? as_bytes(op.emit, w) : std::nullopt;
  const auto is_plain = [](const Bytes& bytes) { return bytes.bytes.dtype == DType::kI8 && bytes.zero == 0; };
  if (!right || !is_plain(*left) || !is_plain(*right) || value < INT8_MIN || value > INT8_MAX) return {x, w, pad};
  return {left->bytes, right->bytes, loop::integer_literal(DType::kI8, value)};
}

}  // namespace

std::optional<LazyTensor> implicit_product(const OperatorCall& op, const Windows& windows,
                                           const Expr& value_of_padding) {
  Emitter& emit = op.emit;
  Context& context = op.context();
  const auto [x, w, pad] = factors(op, value_of_padding);
  const Dim groups = context.dim(op.integer("groups")), outputs = context.floor_divide(w.dims[0], groups),
            inputs = w.dims[1];
  const Dims filter(w.dims.begin() + 1, w.dims.end());
  const auto terms = product_of(filter), pixels = product_of(windows.out);
  if (emit.machine().threads == 0 || !terms || !pixels || !product_of(windows.in) || *terms == 0) return std::nullopt;
  if (outputs.constant().value_or(0) < schedules::kBlockSide || *pixels < schedules::kBlockSide) return std::nullopt;

  // Pixels of several images are columns of one product, where each image has few; else each image has one product,
  // whose indices cost less.
  const bool is_joined = x.dims[0].constant().value_or(1) > 1 && *pixels <= kFewPixels;
  Dims matrices{groups}, columns_of_matrix = windows.out;
  if (is_joined) columns_of_matrix.insert(columns_of_matrix.begin(), x.dims[0]);
  else matrices.insert(matrices.begin(), x.dims[0]);
  const auto column_count = product_of(columns_of_matrix);
  if (!column_count) return std::nullopt;
  const Dim term_count = context.dim(*terms), all_columns = context.dim(*column_count);
  // The image, and the pixel in it, of a column.
  const auto pixel_of = [=, &context](const Dims& matrix, Dim column) {
    Dims pixel = unravel(context, column, columns_of_matrix);
    if (!is_joined) pixel.insert(pixel.begin(), matrix[0]);
    return pixel;
  };
  // [groups, outputs, terms]
  const LazyTensor weights =
      w.constant ? emit.constant(w.constant->reshaped({*groups.constant(), *outputs.constant(), *terms}))
                 : emit.stored("weights",
                               emit.expression({groups, outputs, term_count}, w.dtype, [=, &context](const Dims& at) {
                                 Dims from{context.add(context.multiply(at[0], outputs), at[1])};
                                 std::ranges::copy(unravel(context, at[2], filter), std::back_inserter(from));
                                 return w.at(from);
                               }));
  const LazyTensor padded = padded_elements(op, windows, x, pad);
  // [images, groups, terms, columns], without the images where they are joined.
  Dims columns_dims = matrices;
  columns_dims.push_back(term_count), columns_dims.push_back(all_columns);
  const LazyTensor columns =
      emit.stored("columns", emit.expression(columns_dims, x.dtype, [=, &context](const Dims& at) {
        const auto [matrix, element] = split_at(at, matrices.size());
        const Dims term = unravel(context, element[0], filter), pixel = pixel_of(matrix, element[1]);
        Dims from{pixel[0], context.add(context.multiply(matrix.back(), inputs), term[0])};
        for (size_t d = 0; d < windows.rank(); ++d)
          from.push_back(windows.input_index(context, d, pixel[1 + d], term[1 + d]));
        return padded.at(from);
      }));
  return multiply(op, "conv",
                  {.batch = matrices,
                   .rows = outputs,
                   .columns = all_columns,
                   .terms = {term_count},
                   .term =
                       [=](const Dims& matrix, Dim i, const Dims& k, Dim j) {
                         Dims from = matrix;
                         from.push_back(k[0]), from.push_back(j);
                         return factor(weights.at({matrix.back(), i, k[0]})) * factor(columns.at(from));
                       },
                   .dims = op.dims(),
                   .result_index =
                       [=, &context](const Dims& at) {
                         const auto [matrix, element] = split_at(at, matrices.size());
                         Dims index = pixel_of(matrix, element[1]);
                         index.insert(index.begin() + 1,
                                      context.add(context.multiply(matrix.back(), outputs), element[0]));
                         return index;
                       }});
}

}  // namespace tenon::compiler::kernels
