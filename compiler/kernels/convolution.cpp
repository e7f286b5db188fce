// Convolutions over one to three spatial dims, with groups, and transposed ones.
#include "compiler/kernels/byte_convolution.h"
#include "compiler/kernels/direct.h"
#include "compiler/kernels/product.h"
#include "compiler/kernels/slide.h"
#include "compiler/kernels/transposed.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

Expr factor(const Expr& x) { return loop::convert(x->dtype == DType::kI8 ? DType::kI32 : x->dtype, x); }

// Of any rank and of sizes that may not be known: vectors are neighbours along the last dim, unrolled over channels of
// the result. x is copied with what pads it, as far as the last vector reaches.
Value along_rows(const Operation& op, const Windows& windows, Dim groups, const Expr& pad) {
  using Role = TileAxis::Role;
  Context& context = op.context();
  const Value& x = op.arg(0);
  const Value w = op.emit.stored("w", op.arg(1));
  const size_t rank = windows.rank(), lane = 1 + rank, row = 2 + rank;
  const Dim group_out = context.floor_divide(op.dims()[1], groups), group_in = w.dims[1];
  const TileShape shape = tile_of(op, group_out, windows.out.back());
  const int64_t tile = shape.vectors * lanes_of(op.dtype());
  Dims plane_dims(x.dims.begin(), x.dims.begin() + 2);
  for (size_t d = 0; d < rank; ++d) {
    Dim count = windows.out[d];
    if (d + 1 == rank) count = context.multiply(context.ceil_divide(count, tile), context.dim(tile));
    const auto last = [&](Dim size) { return context.subtract(size, context.dim(1)); };
    plane_dims.push_back(
        context.maximum({context.add(windows.place(context, d, last(count), last(windows.kernel[d])), context.dim(1)),
                         context.dim(0)}));
  }
  const Value plane =
      op.emit.stored("plane", op.emit.expression(plane_dims, x.dtype, [=, &op, &context](const Dims& at) {
        Dims from = at;
        Expr inside;
        for (size_t d = 0; d < rank; ++d) {
          from[2 + d] = context.subtract(at[2 + d], context.dim(windows.before[d]));
          const Expr here = op.emit.inside(from[2 + d], context.dim(0), x.dims[2 + d]);
          inside = inside ? both(inside, here) : here;
        }
        return choose(inside, x.at(from), pad);
      }));
  Tiles tiles;
  tiles.axes = {{Role::kOuter, x.dims[0], 1}, {Role::kOuter, groups, 1}};
  for (size_t d = 0; d + 1 < rank; ++d) tiles.axes.push_back({Role::kOuter, windows.out[d], 1});
  tiles.axes.push_back({Role::kLanes, windows.out.back(), tile});
  tiles.axes.push_back({Role::kRows, group_out, shape.rows});
  tiles.over = {group_in};
  tiles.over.insert(tiles.over.end(), windows.kernel.begin(), windows.kernel.end());
  tiles.term = [=, &context](const std::vector<TileIndex>& at, const Dims& k) {
    const Dim group = at[1].index;
    Dims from{at[0].index, context.add(context.multiply(group, group_in), k[0])};
    Dims weight{context.add(context.multiply(group, group_out), at[row].index), k[0]};
    for (size_t d = 0; d < rank; ++d) {
      from.push_back(windows.place(context, d, at[2 + d].index, k[1 + d]));
      weight.push_back(k[1 + d]);
    }
    return factor(plane.at(from)) * factor(w.at(weight));
  };
  tiles.place = [=, &context](const Dims& at) {
    Dims place{at[0], context.add(context.multiply(at[1], group_out), at[row])};
    place.insert(place.end(), at.begin() + 2, at.begin() + static_cast<ptrdiff_t>(lane) + 1);
    return place;
  };
  return op.emit.contract("conv", op.dims(), op.dtype(), std::move(tiles));
}

Values convolution(const Operation& op) {
  Context& context = op.context();
  const Value& w = op.arg(1);
  const Windows windows = read_windows(op, Dims(w.dims.begin() + 2, w.dims.end()));
  const Expr pad = like(loop::literal(op.arg(0).dtype, 0), static_cast<double>(op.integer("pad_value")));
  const Dim groups = context.dim(op.integer("groups"));
  if (w.dims[0] == groups && w.dims[1].constant() == 1 && slides(windows)) {  // depthwise
    if (auto bytes = byte_depthwise(op, windows)) return std::vector{std::move(*bytes)};
    return std::vector{slide(op, "conv",
                             {.windows = windows,
                              .pad = pad,
                              .init = like(factor(pad), 0),
                              .element = factor,
                              .step = [w, &context](const Expr& sum, const Expr& x, const Dims& at, const Dims& taps) {
                                Dims weight{at[1], context.dim(0)};
                                weight.insert(weight.end(), taps.begin(), taps.end());
                                return sum + factor(w.at(weight)) * x;
                              }})};
  }
  if (auto bytes = byte_convolution(op)) return std::vector{std::move(*bytes)};
  const auto times = [](const Expr& a, const Expr& b) { return factor(a) * factor(b); };
  if (auto direct = direct_convolution(op, pad, times)) return std::vector{std::move(*direct)};
  return std::vector{along_rows(op, windows, groups, pad)};
}

// In tiles where the weights' sizes are known. Else each element of the result gathers what reaches it: x at (place +
// before - tap * dilation) / stride, where that is whole and inside.
Values transposed_convolution(const Operation& op) {
  if (auto tiles = transposed_convolution_in_tiles(op)) return std::vector{std::move(*tiles)};
  Emitter& emit = op.emit;
  Context& context = op.context();
  const Value &x = op.arg(0), &w = op.arg(1);
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
                 Expr reaches;
                 for (size_t d = 0; d < rank; ++d) {
                   const Dim tap = at[3 + rank + d], stride = context.dim(windows.strides[d]);
                   const Dim place = context.subtract(context.add(at[2 + d], context.dim(windows.before[d])),
                                                      context.multiply(tap, context.dim(windows.dilation[d])));
                   from.push_back(context.floor_divide(place, stride));
                   weight.push_back(tap);
                   Expr here = emit.inside(from.back(), context.dim(0), windows.in[d]);
                   if (windows.strides[d] != 1) {
                     here = both(here, same(loop::index_value(context.multiply(from.back(), stride)),
                                            loop::index_value(place)));
                   }
                   reaches = reaches ? both(reaches, here) : here;
                 }
                 const Expr product = x.at(from) * w.at(weight);
                 return choose(reaches, product, like(product, 0));
               }})};
}

}  // namespace

std::span<const Lowering> convolution_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {"conv1d", convolution},
      {"conv2d", convolution},
      {"conv3d", convolution},
      {"conv1d_transpose", transposed_convolution},
      {"conv2d_transpose", transposed_convolution},
      {"conv3d_transpose", transposed_convolution},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
