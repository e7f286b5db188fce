#include "compiler/ir/gradients/windows.h"

#include <limits>

namespace tenon::compiler::gradients {
namespace {

using Ints = std::vector<int64_t>;

// A tensor [count, length] of one spatial dim beside [N, C, count, length, ...] of `spatial` dims.
Term beside_windows(const Term& x, size_t dim, size_t spatial) {
  Ints axes;
  for (size_t i = 0; i < 2 + 2 * spatial; ++i) {
    if (i != 2 + 2 * dim && i != 3 + 2 * dim) axes.push_back(static_cast<int64_t>(i));
  }
  return x.expand_dims(std::move(axes));
}

Term product(Formula& formula, const Term& x, Dim factor) { return x * size_value(formula, factor, DType::kI64); }

}  // namespace

std::vector<WindowAxis> window_axes(const GradientBuilder& g, const Dims& x, const Dims& y, const Ints& kernel) {
  const Ints &strides = ints_attr(g, "strides"), &padding = ints_attr(g, "padding"),
             &dilation = ints_attr(g, "dilation");
  std::vector<WindowAxis> axes;
  for (size_t i = 0; i < kernel.size(); ++i) {
    axes.push_back({x[2 + i], y[2 + i], kernel[i], strides[i], padding[i], padding[kernel.size() + i], dilation[i]});
  }
  return axes;
}

Term window_indices(Formula& formula, const WindowAxis& axis) {
  const Term starts = indices_below(formula, axis.count) * static_cast<double>(axis.stride);
  const Term steps = indices_below(formula, formula.builder().context().dim(axis.kernel));
  return along(starts - static_cast<double>(axis.before), 0, 2) +
         along(steps * static_cast<double>(axis.dilation), 1, 2);
}

Term window_elements(const Term& x, const std::vector<WindowAxis>& axes, double value) {
  Term elements = x;
  for (size_t i = axes.size(); i-- > 0;) {
    WindowAxis axis = axes[i];
    const auto at = static_cast<int64_t>(2 + i);
    elements = elements.pad(at, axis.before, axis.after, value);
    axis.before = 0;
    elements = gather(elements, window_indices(x.formula(), axis), at);
  }
  return elements;
}

Term spread_windows(const Term& dy, const Term& w, const std::vector<WindowAxis>& axes, int64_t groups) {
  Formula& formula = dy.formula();
  if (!formula.ok()) return dy;
  Context& context = formula.builder().context();
  Ints strides, dilation, before, after, more;
  Dims begin(2, context.dim(0)), sizes = dy.dims();
  sizes.resize(2);
  sizes[1] = context.multiply(w.dims()[1], context.dim(groups));
  for (const WindowAxis& axis : axes) {
    strides.push_back(axis.stride);
    dilation.push_back(axis.dilation);
    // The elements after the last window; they are negative where it extends beyond the padding.
    const int64_t footprint = (axis.kernel - 1) * axis.dilation + 1;
    const Dim end =
        context.add(context.multiply(context.subtract(axis.count, context.dim(1)), context.dim(axis.stride)),
                    context.dim(footprint));
    const auto left = context.subtract(context.add(axis.size, context.dim(axis.before + axis.after)), end).constant();
    before.push_back(left ? axis.before : 0);
    after.push_back(left ? axis.after + std::max<int64_t>(0, -*left) : 0);
    more.push_back(left ? std::max<int64_t>(0, *left) : axis.stride - 1);
    begin.push_back(context.dim(left ? 0 : axis.before));
    sizes.push_back(axis.size);
  }
  before.insert(before.end(), after.begin(), after.end());
  constexpr OperatorId kOperators[] = {ops::kConv1dTranspose, ops::kConv2dTranspose, ops::kConv3dTranspose};
  const Term whole = formula.apply(kOperators[axes.size() - 1], {dy, w},
                                   {{"strides", strides},
                                    {"dilation", dilation},
                                    {"padding", before},
                                    {"output_padding", more},
                                    {"groups", groups}});
  return part(whole, begin, sizes);
}

Term spread_windows(const Term& dy, const std::vector<WindowAxis>& axes) {
  Formula& formula = dy.formula();
  if (!formula.ok()) return dy;
  Context& context = formula.builder().context();
  const Dims dims = dy.dims();
  Dims maps{context.multiply(dims[0], dims[1]), context.dim(1)}, ones(2, context.dim(1)),
      sizes(dims.begin(), dims.begin() + 2);
  for (size_t i = 0; i < axes.size(); ++i) {
    maps.push_back(dims[2 + i]);
    ones.push_back(context.dim(axes[i].kernel));
    sizes.push_back(axes[i].size);
  }
  return spread_windows(dy.reshape_to(maps), formula.full(ones, 1, dy.dtype()), axes, 1).reshape_to(sizes);
}

IndexedWindows indexed_windows(Formula& formula, const WindowAxis& axis) {
  const Term indices = window_indices(formula, axis), size = size_value(formula, axis.size, DType::kI64);
  const Term zero = formula.scalar(0, DType::kI64);
  const Term inside = both(less_equal(zero, indices), less(indices, size));
  const Term in_range = formula.apply(ops::kMinimum, {formula.apply(ops::kMaximum, {indices, zero}), size - 1});
  return {axis.size, axis.count, formula.builder().context().dim(axis.kernel), in_range, inside};
}

Term at_maxima(const Term& x, const Term& dy, const std::vector<IndexedWindows>& windows) {
  Formula& formula = x.formula();
  if (!formula.ok()) return x;
  Context& context = formula.builder().context();
  const Dims dims = x.dims(), results = dy.dims();
  const size_t spatial = windows.size();

  // The elements of each window along one last axis, and the index of their first maximum.
  Term elements = x;
  for (size_t i = spatial; i-- > 0;) elements = gather(elements, windows[i].indices, static_cast<int64_t>(2 + i));
  for (size_t i = 0; i < spatial; ++i) {
    const Term lowest = formula.scalar(-std::numeric_limits<double>::infinity(), x.dtype());
    elements = select(beside_windows(windows[i].inside, i, spatial), elements, lowest);
  }
  Ints order{0, 1};
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(2 + 2 * i));
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(3 + 2 * i));
  Dims flat = results;
  Dim length = context.dim(1), map = length, count = length;
  for (const IndexedWindows& axis : windows) {
    length = context.multiply(length, axis.length);
    map = context.multiply(map, axis.size);
    count = context.multiply(count, axis.count);
  }
  flat.push_back(length);
  const Term rows = elements.transpose(order).reshape_to(flat);
  Term best = formula.apply(ops::kArgMax, {rows}, {{"axis", int64_t{-1}}});

  // The index in the map: the position along each dim, which the window's table of indices has.
  std::vector<Term> positions;
  for (size_t i = spatial; i-- > 0;) {
    const IndexedWindows& axis = windows[i];
    const Term size = size_value(formula, axis.length, DType::kI64);
    const Term in_window = formula.apply(ops::kModulo, {best, size});
    best = formula.apply(ops::kFloorDivide, {best, size});
    const Term window =
        along(indices_below(formula, axis.count), static_cast<int64_t>(2 + i), static_cast<int64_t>(2 + spatial));
    const Term table = axis.indices.reshape_to({context.multiply(axis.count, axis.length)});
    positions.push_back(gather(table, product(formula, window, axis.length) + in_window, 0));
  }
  Term index = positions.back();
  for (size_t i = 1; i < spatial; ++i) index = product(formula, index, windows[i].size) + positions[spatial - 1 - i];
  const Dims maps{dims[0], dims[1], count};
  const Term added =
      formula.apply(ops::kScatterElements,
                    {formula.full({dims[0], dims[1], map}, 0, x.dtype()), index.reshape_to(maps), dy.reshape_to(maps)},
                    {{"axis", int64_t{2}}, {"reduction", std::string("add")}});
  return added.reshape_to(dims);
}

}  // namespace tenon::compiler::gradients
