// Gradients of pooling.
#include "compiler/ir/gradients/windows.h"

namespace tenon::compiler::gradients {
namespace {

std::vector<WindowAxis> pool_axes(GradientBuilder& g, const Term& dy) {
  return window_axes(g, g.arg(0).dims(), dy.dims(), ints_attr(g, "kernel"));
}

Status max_pool(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  const Term dy = g.with_sizes(g.cotangent());
  if (!g.ok()) return g.status();
  std::vector<IndexedWindows> windows;
  for (const WindowAxis& axis : pool_axes(g, dy)) windows.push_back(indexed_windows(g, axis));
  g.add(0, at_maxima(g.arg(0), dy, windows));
  return g.status();
}

// dy divided by the number of elements of each window.
Status avg_pool(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  Term dy = g.with_sizes(g.cotangent());
  if (!g.ok()) return g.status();
  const std::vector<WindowAxis> axes = pool_axes(g, dy);
  const bool count_padding = int_attr(g, "count_include_pad") == 1, ceil = int_attr(g, "ceil") == 1;
  double elements = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const WindowAxis& axis = axes[i];
    if (!ceil && (count_padding || (axis.before == 0 && axis.after == 0))) {
      elements *= static_cast<double>(axis.kernel);
      continue;
    }
    const Term indices = window_indices(g, axis), size = size_value(g, axis.size, DType::kI64);
    Term counted = less(indices, count_padding ? size + static_cast<double>(axis.after) : size);
    if (!count_padding) counted = both(counted, less_equal(g.scalar(0, DType::kI64), indices));
    const Term count = counted.cast(dy.dtype()).reduce(ops::kSum, {1});
    const Term at_least_one = g.apply(ops::kMaximum, {count, g.scalar(1, dy.dtype())});
    dy = dy / along(at_least_one, static_cast<int64_t>(2 + i), dy.rank());
  }
  g.add(0, spread_windows(dy / elements, axes));
  return g.status();
}

// y = (sum |x|^p)^(1/p): dx = sign(x) * |x|^(p - 1) * spread(dy * y^(1 - p)), 0 where y is.
Term over_norm(GradientBuilder& g) {
  const auto p = static_cast<double>(int_attr(g, "p"));
  const Term y = g.result(), dy = g.cotangent();
  if (p == 1) return dy;
  if (p == 2) return drop_where(equal(y, 0), dy / y);
  return drop_where(equal(y, 0), dy * g.apply(ops::kPower, {y, g.scalar(1 - p, y.dtype())}));
}
Term times_powers(GradientBuilder& g, const Term& spread) {
  const auto p = static_cast<double>(int_attr(g, "p"));
  const Term x = g.arg(0);
  if (p == 1) return sign(x) * spread;
  if (p == 2) return x * spread;
  return sign(x) * g.apply(ops::kPower, {abs(x), g.scalar(p - 1, x.dtype())}) * spread;
}

Status lp_pool(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  const Term part = g.with_sizes(over_norm(g));
  if (g.ok()) g.add(0, times_powers(g, spread_windows(part, pool_axes(g, part))));
  return g.status();
}

Status global_avg_pool(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  const Term x = g.arg(0);
  const Dims dims = x.dims();
  const Term count = size_value(g, g.builder().context().product(std::span(dims).subspan(2)), x.dtype());
  g.add(0, (g.cotangent() / count).broadcast_to(dims));
  return g.status();
}

Status global_max_pool(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  const Term x = g.arg(0);
  const Dims dims = x.dims();
  Context& context = g.builder().context();
  const Dims maps{dims[0], dims[1], context.product(std::span(dims).subspan(2))};
  const Term best = g.apply(ops::kHardmax, {x.reshape_to(maps)}, {{"axis", int64_t{2}}});
  const Term dy = g.cotangent().reshape_to({dims[0], dims[1], context.dim(1)});
  g.add(0, (best * dy).reshape_to(dims));
  return g.status();
}

// Window i of n over a dim of size s: from floor(i * s / n) to ceil((i + 1) * s / n).
struct AdaptiveAxis {
  Dim size, count;
  Term begin, end;
};
std::vector<AdaptiveAxis> adaptive_axes(GradientBuilder& g) {
  std::vector<AdaptiveAxis> axes;
  const Dims x = g.arg(0).dims(), y = g.cotangent().dims();
  for (size_t i = 2; i < x.size(); ++i) {
    const Term windows = indices_below(g, y[i]), size = size_value(g, x[i], DType::kI64);
    const Term count = size_value(g, y[i], DType::kI64);
    const Term end = g.apply(ops::kFloorDivide, {(windows + 1) * size + (count - 1), count});
    axes.push_back({x[i], y[i], g.apply(ops::kFloorDivide, {windows * size, count}), end});
  }
  return axes;
}

// dy times a matrix of weights [count, size] along each dim.
Status adaptive_avg_pool(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  Term dx = g.cotangent();
  const std::vector<AdaptiveAxis> axes = adaptive_axes(g);
  for (size_t i = 0; i < axes.size(); ++i) {
    const Term index = along(indices_below(g, axes[i].size), 1, 2);
    const Term begin = along(axes[i].begin, 0, 2), end = along(axes[i].end, 0, 2);
    const Term inside = both(less_equal(begin, index), less(index, end)).cast(dx.dtype());
    std::string from = std::string("abcde").substr(0, axes.size() + 2), to = from;
    to[2 + i] = 'z';
    dx = einsum(from + "," + from[2 + i] + "z->" + to, dx, inside / (end - begin).cast(dx.dtype()));
  }
  g.add(0, dx);
  return g.status();
}

Status adaptive_max_pool(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  Context& context = g.builder().context();
  std::vector<IndexedWindows> windows;
  for (const AdaptiveAxis& axis : adaptive_axes(g)) {
    const Dim length = context.add(context.floor_divide(axis.size, axis.count), context.dim(2));
    const Term indices = along(axis.begin, 0, 2) + along(indices_below(g, length), 1, 2);
    const Term last = size_value(g, axis.size, DType::kI64) - 1;
    windows.push_back(
        {axis.size, axis.count, length, g.apply(ops::kMinimum, {indices, last}), less(indices, along(axis.end, 0, 2))});
  }
  g.add(0, at_maxima(g.arg(0), g.cotangent(), windows));
  return g.status();
}

constexpr std::string_view kFirstMaximum = "of equal maxima of a window, that of the first one";
constexpr std::string_view kZeroNorm = "0 where all elements are 0";

constexpr GradientRow kPools[] = {
    {ops::kMaxPool1d, max_pool, kFirstMaximum},
    {ops::kMaxPool2d, max_pool, kFirstMaximum},
    {ops::kMaxPool3d, max_pool, kFirstMaximum},
    {ops::kAvgPool1d, avg_pool},
    {ops::kAvgPool2d, avg_pool},
    {ops::kAvgPool3d, avg_pool},
    {ops::kLpPool1d, lp_pool, kZeroNorm},
    {ops::kLpPool2d, lp_pool, kZeroNorm},
    {ops::kLpPool3d, lp_pool, kZeroNorm},
    {ops::kGlobalAvgPool, global_avg_pool},
    {ops::kGlobalMaxPool, global_max_pool, kFirstMaximum},
    {ops::kGlobalLpPool,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, times_powers(g, over_norm(g)).broadcast_to(g.arg(0).dims()));
       return g.status();
     },
     kZeroNorm},
    {ops::kAdaptiveAvgPool, adaptive_avg_pool},
    {ops::kAdaptiveMaxPool, adaptive_max_pool, kFirstMaximum},
};

}  // namespace

std::span<const GradientRow> pool_gradients() { return kPools; }

}  // namespace tenon::compiler::gradients
