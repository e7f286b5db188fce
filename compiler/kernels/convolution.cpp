// Convolutions and transposed convolutions over one to three spatial dims, with groups.
#include "compiler/kernels/byte_convolution.h"
#include "compiler/kernels/implicit_product.h"
#include "compiler/kernels/plain_convolution.h"
#include "compiler/kernels/product.h"
#include "compiler/kernels/size_checks.h"
#include "compiler/kernels/sliding_window.h"
#include "compiler/kernels/transposed.h"

namespace tenon::compiler::kernels {
namespace {

// A sum for each output pixel, which a GPU's thread computes: its neighbours read the same cache lines. The terms are
// in the order of sliding windows, column by column.
LazyTensor pixel_sums(const OperatorCall& op, const Windows& windows, const Expr& pad) {
  Context& context = op.context();
  const LazyTensor x = padded_elements(op, windows, op.arg(0), pad), w = op.arg(1);
  const auto term = [=, &context](const Dims& at) {
    const size_t rank = windows.rank();
    Dims from{at[0], at[1]}, weight{at[1], context.dim(0)};
    for (size_t d = 0; d < rank; ++d) {
      const Dim kernel_index = at[2 + rank + (rank - 1 - d)];
      from.push_back(windows.input_index(context, d, at[2 + d], kernel_index));
      weight.push_back(kernel_index);
    }
    return factor(x.at(from)) * factor(w.at(weight));
  };
  return op.emit.reduce(
      "conv", {.dims = op.dims(), .over = Dims(windows.kernel.rbegin(), windows.kernel.rend()), .term = term});
}

LoweredResults convolution(const OperatorCall& op) {
  Context& context = op.context();
  const LazyTensor& w = op.arg(1);
  const Windows windows = read_windows(op, Dims(w.dims.begin() + 2, w.dims.end()));
  const Expr pad = like(loop::literal(op.arg(0).dtype, 0), static_cast<double>(op.integer("pad_value")));
  const Dim groups = context.dim(op.integer("groups"));
  if (w.dims[0] == groups && w.dims[1].constant() == 1 && has_sliding_window(windows)) {  // depthwise
    if (op.emit.machine().threads > 0) return std::vector{pixel_sums(op, windows, pad)};
    if (auto bytes = byte_depthwise(op, windows)) return std::vector{std::move(*bytes)};
    const LazyTensor& x = op.arg(0);
    const LazyTensor factors = op.emit.expression(x.dims, op.dtype(), [x](const Dims& at) { return factor(x.at(at)); });
    return std::vector{sliding_window(
        op, "conv",
        {.windows = windows,
         .x = x.dtype == op.dtype() ? x : factors,
         .pad = like(loop::literal(op.dtype(), 0), static_cast<double>(op.integer("pad_value"))),
         .init = loop::literal(op.dtype(), 0),
         .step = [w, &context](const Expr& sum, const Expr& x, const Dims& at, const Dims& kernel_index) {
           Dims weight{at[1], context.dim(0)};
           weight.insert(weight.end(), kernel_index.begin(), kernel_index.end());
           return sum + factor(w.at(weight)) * x;
         }})};
  }
  if (auto product = implicit_product(op, windows, pad)) return std::vector{std::move(*product)};
  if (auto bytes = byte_convolution(op)) return std::vector{std::move(*bytes)};
  return std::vector{plain_convolution(op, pad, [](const Expr& w, const Expr& x) { return factor(w) * factor(x); })};
}

// In register tiles where the sizes of the weights are constant. Else each output pixel is a sum over kernel taps of x
// at (pixel + before - tap * dilation) / stride, where that is an integer within x.
LoweredResults transposed_convolution(const OperatorCall& op) {
  if (auto tiles = transposed_convolution_in_tiles(op)) return std::vector{std::move(*tiles)};
  Emitter& emit = op.emit;
  Context& context = op.context();
  const LazyTensor &x = op.arg(0), &w = op.arg(1);
  const Windows windows = read_windows(op, Dims(w.dims.begin() + 2, w.dims.end()));
  const Dim group_in = context.floor_divide(x.dims[1], context.dim(op.integer("groups"))), group_out = w.dims[1];
  const size_t rank = windows.rank();
  Dims over{group_in};
  over.insert(over.end(), windows.kernel.begin(), windows.kernel.end());
  return std::vector{emit.reduce(
      "conv", {.dims = op.dims(), .over = over, .term = [=, &emit, &context](const Dims& at) {
                 const Dim group = context.floor_divide(at[1], group_out);
                 const Dim i = context.add(context.multiply(group, group_in), at[2 + rank]);
                 Dims from{at[0], i}, weight{i, context.modulo(at[1], group_out)};
                 Expr has_source;
                 for (size_t d = 0; d < rank; ++d) {
                   const Dim kernel_index = at[3 + rank + d], stride = context.dim(windows.strides[d]);
                   const Dim index = context.subtract(context.add(at[2 + d], context.dim(windows.before[d])),
                                                      context.multiply(kernel_index, context.dim(windows.dilation[d])));
                   from.push_back(context.floor_divide(index, stride));
                   weight.push_back(kernel_index);
                   Expr in_range = emit.inside(from.back(), context.dim(0), windows.in[d]);
                   if (windows.strides[d] != 1) {
                     in_range = logical_and(in_range, is_equal(loop::index_value(context.multiply(from.back(), stride)),
                                                               loop::index_value(index)));
                   }
                   has_source = has_source ? logical_and(has_source, in_range) : in_range;
                 }
                 const Expr product = x.at(from) * w.at(weight);
                 return select(has_source, product, like(product, 0));
               }})};
}

}  // namespace

std::span<const Lowering> convolution_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {ops::kConv1d, convolution, require_kernel},
      {ops::kConv2d, convolution, require_kernel},
      {ops::kConv3d, convolution, require_kernel},
      {ops::kConv1dTranspose, transposed_convolution, require_result},
      {ops::kConv2dTranspose, transposed_convolution, require_result},
      {ops::kConv3dTranspose, transposed_convolution, require_result},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
