// Gradients of resampling.
#include "compiler/ir/gradients/formula.h"

namespace tenon::compiler::gradients {
namespace {

// A resampled axis is a product with a matrix of weights, which the operator itself makes of a unit matrix.
Status resize(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  Context& context = g.builder().context();
  const Dims x = g.arg(0).dims(), y = g.cotangent().dims();
  if (x.size() > 20) g.fail("the gradient of resize supports at most 20 dims");
  const auto scales = g.computed().find("scales");
  const bool given = scales == g.computed().end();
  Term dx = g.cotangent();
  for (size_t i = 0; i < x.size() && g.ok(); ++i) {
    Attributes attributes;
    for (const char* name : {"mode", "coordinates", "nearest", "cubic", "exclude_outside", "antialias"})
      attributes.attrs.emplace(name, g.attrs().find(name)->second);
    attributes.set("sizes", Dims{context.dim(-1), y[i]});
    if (given) {
      const auto& values = std::get<std::vector<double>>(g.attrs().find("scales")->second);
      if (x[i] == y[i] && (values.empty() || values[i] == 1)) continue;
      if (!values.empty()) attributes.attrs.emplace("scales", std::vector<double>{1, values[i]});
    } else {
      const Term all(g, std::get<Atom>(scales->second));
      const auto axis = static_cast<int64_t>(i);
      attributes.set("scales", concat({g.full({context.dim(1)}, 1, all.dtype()), all.slice(0, axis, axis + 1)}, 0));
    }
    const Term weights = g.named(apply(ops::kResize, {unit_matrix(g, x[i], dx.dtype())}, std::move(attributes)));
    const std::string from = std::string("abcdefghijklmnopqrst").substr(0, x.size());
    std::string to = from;
    to[i] = 'z';
    dx = einsum(from + ",z" + from[i] + "->" + to, dx, weights);
  }
  g.add(0, dx);
  return g.status();
}

// The elements of maps [N, C, M] at indices [N, Q]: [N, C, Q].
Term at_points(const Term& maps, const Term& indices) {
  const Dims of_maps = maps.dims(), of_points = indices.dims();
  if (!maps.formula().ok()) return maps;
  return maps.formula().apply(ops::kGatherElements,
                              {maps, indices.expand_dims({1}).broadcast_to({of_points[0], of_maps[1], of_points[1]})},
                              {{"axis", int64_t{2}}});
}

Term clamped(const Term& x, const Term& lo, const Term& hi) {
  Formula& formula = x.formula();
  return formula.apply(ops::kMinimum, {formula.apply(ops::kMaximum, {x, lo}), hi});
}

// The elements around a coordinate along one axis: their indices, their weights, and whether they are in the map.
struct Tap {
  Term index;
  std::optional<Term> weight, inside;
};

// The weights of four elements around a point between the two in the middle, at `t` from the second one.
std::vector<Term> cubic_weights(const Term& t) {
  constexpr double kSlope = -0.75;
  const auto outer = [&](const Term& x) { return ((x * kSlope - 5 * kSlope) * x + 8 * kSlope) * x - 4 * kSlope; };
  const auto inner = [&](const Term& x) { return (x * (kSlope + 2) - (kSlope + 3)) * x * x + 1; };
  return {outer(t + 1), inner(t), inner(1 - t), outer(2 - t)};
}

std::vector<Tap> taps(GradientBuilder& g, const Term& position, Dim size_dim) {
  const std::string &mode = string_attr(g, "mode"), &padding = string_attr(g, "padding");
  const bool align = int_attr(g, "align_corners") == 1;
  const Term size = size_value(g, size_dim, DType::kI64), zero = g.scalar(0, DType::kI64);
  const Term base = g.apply(mode == "nearest" ? ops::kRound : ops::kFloor, {position}), t = position - base;
  std::vector<std::optional<Term>> weights{std::nullopt};
  if (mode == "linear") weights = {1 - t, t};
  if (mode == "cubic") {
    const std::vector<Term> four = cubic_weights(t);
    weights.assign(four.begin(), four.end());
  }
  std::vector<Tap> found;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double offset = static_cast<double>(i) - (mode == "cubic" ? 1 : 0);
    constexpr double kFar = 1 << 24;  // as in the operator: farther coordinates have the same values
    const Term index = g.apply(ops::kClip, {base + offset}, {{"min", -kFar}, {"max", kFar}}).cast(DType::kI64);
    Tap tap{index, weights[i], std::nullopt};
    if (padding == "reflection") {  // at the centres of the outer elements, or at their edges
      const Term one = g.scalar(1, DType::kI64);
      const Term period = align ? g.apply(ops::kMaximum, {(size - 1) * 2, one}) : size * 2;
      const Term turn = g.apply(ops::kModulo, {index, period});
      tap.index = select(less(turn, size), turn, align ? period - turn : period - 1 - turn);
    } else {
      if (padding == "zeros") tap.inside = both(less_equal(zero, index), less(index, size));
      tap.index = clamped(index, zero, size - 1);
    }
    found.push_back(std::move(tap));
  }
  return found;
}

// The weighted sum over the elements around each point.
Status grid_sample(GradientBuilder& g) {
  const OperatorFormula sample(g);
  if (!g.ok()) return g.status();
  Context& context = g.builder().context();
  const Dims x = sample.arg(0).dims(), grid = sample.arg(1).dims();
  const size_t spatial = x.size() - 2;
  const Dim points = context.product(std::span(grid).subspan(1, spatial));
  const Term flat = sample.arg(1).reshape_to({grid[0], points, grid.back()});
  const Term maps = sample.arg(0).reshape_to({x[0], x[1], context.product(std::span(x).subspan(2))});
  const bool align = int_attr(g, "align_corners") == 1, normalized = int_attr(g, "normalized") == 1;
  std::optional<Term> finite;
  struct Point {
    std::optional<Term> index, weight, inside;
  };
  std::vector<Point> all(1);
  for (size_t i = 0; i < spatial; ++i) {
    const auto component = static_cast<int64_t>(spatial - 1 - i);  // x comes first
    Term position = flat.slice(2, component, component + 1).squeeze({2});
    const Term exists = equal(position - position, 0);
    finite = finite ? both(*finite, exists) : exists;
    position = keep_where(exists, position);
    const Term size = size_value(g, x[2 + i], position.dtype());
    if (normalized) position = align ? (position + 1) / 2 * (size - 1) : ((position + 1) * size - 1) / 2;
    const Term count = size_value(g, x[2 + i], DType::kI64);
    std::vector<Point> next;
    const std::vector<Tap> along_axis = taps(g, position, x[2 + i]);
    for (const Point& point : all) {
      for (const Tap& tap : along_axis) {
        Point more = point;
        more.index = point.index ? *point.index * count + tap.index : tap.index;
        if (tap.weight) more.weight = point.weight ? *point.weight * *tap.weight : *tap.weight;
        if (tap.inside) more.inside = point.inside ? both(*point.inside, *tap.inside) : *tap.inside;
        next.push_back(std::move(more));
      }
    }
    all = std::move(next);
  }
  std::optional<Term> sum;
  for (const Point& point : all) {
    Term value = at_points(maps, *point.index);
    value = keep_where((point.inside ? both(*finite, *point.inside) : *finite).expand_dims({1}), value);
    if (point.weight) value = value * point.weight->expand_dims({1});
    sum = sum ? *sum + value : value;
  }
  return sample.differentiate({sum->reshape_to(g.cotangent().dims())});
}

// The mean or the maximum of samples [R, h * rows, w * columns], whose number is an attribute.
Status roi_align(GradientBuilder& g) {
  const OperatorFormula regions(g);
  const int64_t ratio = int_attr(g, "sampling_ratio");
  if (ratio == 0) {
    g.fail("the gradient of roi_align requires a sampling_ratio above 0",
           "with 0, the number of samples depends on the sizes of the regions");
  }
  if (!g.ok()) return g.status();
  Context& context = g.builder().context();
  const Term x = regions.arg(0), rois = regions.arg(1);
  const Dims dims = x.dims();
  const bool half = int_attr(g, "half_pixel") == 1;
  const Term scaled = rois * float_attr(g, "spatial_scale") - (half ? 0.5 : 0.0);
  const auto corner = [&](int64_t i) { return scaled.slice(1, i, i + 1); };  // [R, 1]
  // The coordinates of the samples along one dim, [R, bins * ratio], their two neighbours and whether they are in x.
  struct Side {
    Term lower, upper, above, inside;  // two indices, the weight of the second one
    Term size;
  };
  const auto side = [&](int64_t low, int64_t high, int64_t bins, Dim size_dim) -> Side {
    Term length = corner(high) - corner(low);
    if (!half) length = g.apply(ops::kMaximum, {length, g.scalar(1, x.dtype())});
    const Term sample = indices_below(g, context.dim(bins * ratio)).cast(x.dtype());
    const Term at = (sample + 0.5) / static_cast<double>(bins * ratio);
    const Term position = corner(low) + length * at.expand_dims({0});
    const Term size = size_value(g, size_dim, x.dtype()), zero = g.scalar(0, x.dtype());
    const Term inside = both(less_equal(g.scalar(-1, x.dtype()), position), less_equal(position, size));
    const Term in_map = clamped(position, zero, size - 1), base = g.apply(ops::kFloor, {in_map});
    const Term upper = g.apply(ops::kMinimum, {base + 1, size - 1});
    return {base.cast(DType::kI64), upper.cast(DType::kI64), in_map - base, inside,
            size_value(g, size_dim, DType::kI64)};
  };
  const auto& bins = ints_attr(g, "size");
  const Side rows = side(1, 3, bins[0], dims[2]), columns = side(0, 2, bins[1], dims[3]);
  const Term maps =
      gather(x, regions.arg(2), 0).reshape_to({rois.dims()[0], dims[1], context.multiply(dims[2], dims[3])});
  if (!g.ok()) return g.status();
  // Each corner of each sample, as [R, C, h, ratio, w, ratio].
  const Dim count = rois.dims()[0];
  const Dims points{count, context.dim(bins[0] * ratio * bins[1] * ratio)};
  const Dims samples{
      count, dims[1], context.dim(bins[0]), context.dim(ratio), context.dim(bins[1]), context.dim(ratio)};
  const auto pair = [&](const Term& row, const Term& column, auto&& combine) {
    const Term both_dims = combine(row.expand_dims({2}), column.expand_dims({1}));  // [R, h * ratio, w * ratio]
    return both_dims.reshape_to(points);
  };
  std::vector<Term> corners;
  const Term inside = pair(rows.inside, columns.inside, [](const Term& a, const Term& b) { return both(a, b); });
  for (const bool down : {false, true}) {
    for (const bool right : {false, true}) {
      const Term index = pair(down ? rows.upper : rows.lower, right ? columns.upper : columns.lower,
                              [&](const Term& a, const Term& b) { return a * columns.size + b; });
      const Term weight = pair(down ? rows.above : 1 - rows.above, right ? columns.above : 1 - columns.above,
                               [](const Term& a, const Term& b) { return a * b; });
      const Term value = at_points(maps, index) * weight.expand_dims({1});
      corners.push_back(keep_where(inside.expand_dims({1}), value).reshape_to(samples));
    }
  }
  const bool average = string_attr(g, "mode") == "avg";
  Term result = corners[0];
  for (size_t i = 1; i < corners.size(); ++i)
    result = average ? result + corners[i] : g.apply(ops::kMaximum, {result, corners[i]});
  return regions.differentiate({result.reduce(average ? ops::kMean : ops::kMax, {3, 5})});
}

constexpr GradientRow kImages[] = {
    {ops::kResize, resize},
    {ops::kGridSample, grid_sample, "by the grid from the right at elements; 0 by it where mode is nearest"},
    {ops::kRoiAlign, roi_align, "sampling_ratio must be above 0"},
};

}  // namespace

std::span<const GradientRow> image_gradients() { return kImages; }

}  // namespace tenon::compiler::gradients
