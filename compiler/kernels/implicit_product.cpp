#include "compiler/kernels/implicit_product.h"

#include <utility>

#include "compiler/kernels/bytes.h"
#include "compiler/kernels/product.h"
#include "compiler/kernels/short_floats.h"
#include "compiler/schedules/thread_product.h"

namespace tenon::compiler::kernels {
namespace {

// The product of all sizes; nullopt where one is not constant.
std::optional<int64_t> product_of(const Dims& sizes) {
  int64_t result = 1;
  for (const Dim size : sizes) {
    const auto constant = size.constant();
    if (!constant || __builtin_mul_overflow(result, *constant, &result)) return std::nullopt;
  }
  return result;
}

// The indices of the element at this position of a dense tensor of these sizes.
Dims unravel(Context& context, Dim position, const Dims& sizes) {
  Dims indices(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    indices[d] = d == 0 ? position : context.modulo(position, sizes[d]);
    position = context.floor_divide(position, sizes[d]);
  }
  return indices;
}

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

  const Dim term_count = context.dim(*terms), pixel_count = context.dim(*pixels);
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
  // [batch, groups, terms, pixels]
  const LazyTensor columns = emit.stored(
      "columns", emit.expression({x.dims[0], groups, term_count, pixel_count}, x.dtype, [=, &context](const Dims& at) {
        const Dims term = unravel(context, at[2], filter), pixel = unravel(context, at[3], windows.out);
        Dims from{at[0], context.add(context.multiply(at[1], inputs), term[0])};
        for (size_t d = 0; d < windows.rank(); ++d)
          from.push_back(windows.input_index(context, d, pixel[d], term[1 + d]));
        return padded.at(from);
      }));
  return multiply(
      op, "conv",
      {.batch = {x.dims[0], groups},
       .rows = outputs,
       .columns = pixel_count,
       .terms = {term_count},
       .term =
           [=](const Dims& batch, Dim i, const Dims& k, Dim j) {
             return factor(weights.at({batch[1], i, k[0]})) * factor(columns.at({batch[0], batch[1], k[0], j}));
           },
       .dims = op.dims(),
       .result_index =
           [=, &context, out = windows.out](const Dims& at) {
             Dims index{at[0], context.add(context.multiply(at[1], outputs), at[2])};
             std::ranges::copy(unravel(context, at[3], out), std::back_inserter(index));
             return index;
           }});
}

}  // namespace tenon::compiler::kernels
