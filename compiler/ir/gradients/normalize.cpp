// Gradients of normalizations.
#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler::gradients {
namespace {

using Axes = std::vector<int64_t>;

Axes axes_between(int64_t begin, int64_t end) {
  Axes axes;
  for (int64_t i = begin; i < end; ++i) axes.push_back(i);
  return axes;
}

Term mean_over(const Term& x, const Axes& axes) { return axes.empty() ? x : x.reduce(ops::kMean, axes, true); }
Term sum_over(const Term& x, Axes axes) { return axes.empty() ? x : x.reduce(ops::kSum, std::move(axes)); }

// A vector of channels beside a tensor [N, C, ...] of this rank.
Term per_channel(const Term& vector, int64_t rank) {
  return rank > 2 ? vector.expand_dims(axes_between(1, rank - 1)) : vector;
}

// All axes of a tensor [N, C, ...] but that of the channels.
Axes but_channels(int64_t rank) {
  Axes axes = axes_between(2, rank);
  axes.insert(axes.begin(), 0);
  return axes;
}

// x divided by its deviation over the axes: h = (x - mean) * r with r = 1 / sqrt(variance + epsilon), where
// dx = r * (dh - mean(dh) - h * mean(dh * h)). Without the mean, where the variance is the mean of x^2.
struct Normalized {
  Term scaled, factor;  // h and r
  Axes axes;
  bool centered;

  Term adjoint(const Term& dh) const {
    const Term along_x = scaled * mean_over(dh * scaled, axes);
    return factor * (centered ? dh - mean_over(dh, axes) - along_x : dh - along_x);
  }
};
Normalized normalized(GradientBuilder& g, const Term& x, Axes axes, bool centered) {
  const Term middle = centered ? x - mean_over(x, axes) : x;
  const Term factor = g.apply(ops::kRsqrt, {mean_over(middle * middle, axes) + float_attr(g, "epsilon")});
  return {middle * factor, factor, std::move(axes), centered};
}

// layer_norm and rms_norm: y = scale * h + bias, over the axes from `axis` on.
Status over_last_dims(GradientBuilder& g, bool centered) {
  const Term x = g.arg(0), dy = g.cotangent();
  if (!g.ok()) return g.status();
  const int64_t axis = axis_attr(g, "axis", x.rank());
  if (g.wants(0) || g.wants(1)) {
    const Normalized h = normalized(g, x, axes_between(axis, x.rank()), centered);
    if (g.wants(0)) g.add(0, h.adjoint(dy * g.arg(1)));
    if (g.wants(1)) g.add(1, dy * h.scaled);
  }
  if (centered && g.wants(2)) g.add(2, dy);
  return g.status();
}

// instance_norm and group_norm: x [N, C, ...] as [N, groups, C / groups, ...], over the axes after the groups.
Status over_groups(GradientBuilder& g, Dim groups) {
  const Term dy = g.cotangent(), x = g.arg(0).reshape_to(dy.dims());
  if (!g.ok()) return g.status();
  const Dims dims = dy.dims();
  Context& context = g.builder().context();
  Dims split{dims[0], groups, context.floor_divide(dims[1], groups)};
  split.insert(split.end(), dims.begin() + 2, dims.end());
  const auto rank = static_cast<int64_t>(dims.size());
  if (g.wants(0) || g.wants(1)) {
    const Normalized h = normalized(g, x.reshape_to(split), axes_between(2, rank + 1), true);
    if (g.wants(0)) {
      const Term dh = (dy * per_channel(g.arg(1), rank)).reshape_to(split);
      g.add(0, h.adjoint(dh).reshape_to(dims));
    }
    if (g.wants(1)) g.add(1, sum_over(dy * h.scaled.reshape_to(dims), but_channels(rank)));
  }
  if (g.wants(2)) g.add(2, sum_over(dy, but_channels(rank)));
  return g.status();
}

// y = gamma * (x - mean) * r + beta, r = 1 / sqrt(variance + epsilon)
Status batch_norm(GradientBuilder& g) {
  const Term dy = g.cotangent();
  const int64_t rank = dy.rank();
  const Axes axes = but_channels(rank);
  const Term factor = g.apply(ops::kRsqrt, {g.arg(4) + float_attr(g, "epsilon")});
  if (g.wants(0)) g.add(0, dy * per_channel(g.arg(1) * factor, rank));
  if (g.wants(2) || g.wants(3)) {
    const Term sum = sum_over(dy, axes);
    if (g.wants(2)) g.add(2, sum);
    if (g.wants(3)) g.add(3, -(sum * g.arg(1) * factor));
  }
  if (g.wants(1) || g.wants(4)) {
    const Term sum = sum_over(dy * (g.arg(0) - per_channel(g.arg(3), rank)), axes) * factor;
    if (g.wants(1)) g.add(1, sum);
    if (g.wants(4)) g.add(4, sum * g.arg(1) * factor * factor * -0.5);
  }
  return g.status();
}

// x / norm: (dy - y * sum(dy * d)) / norm, where d is the norm's derivative: y, or the signs of x.
Status lp_normalize(GradientBuilder& g) {
  if (!g.wants(0)) return g.status();
  const Term x = g.arg(0), y = g.result(), dy = g.cotangent();
  const Axes axes{int_attr(g, "axis")};
  const bool sums = int_attr(g, "p") == 1;
  const Term norm = x.reduce(sums ? ops::kNormL1 : ops::kNormL2, axes, true);
  const Term along_x =
      sums ? sign(x) * (dy * y).reduce(ops::kSum, axes, true) : y * (dy * y).reduce(ops::kSum, axes, true);
  g.add(0, drop_where(equal(norm, 0), (dy - along_x) / norm));
  return g.status();
}

// The sums of x over windows of channels that begin `before` channels earlier.
Term channel_sums(const Term& x, int64_t size, int64_t before) {
  Formula& formula = x.formula();
  if (!formula.ok()) return x;
  const Dims dims = x.dims();
  Context& context = formula.builder().context();
  const Dim map = context.product(std::span(dims).subspan(2));
  const Term rows = x.reshape_to({dims[0], dims[1], map}).transpose({0, 2, 1});
  // One window more than there are channels, of which there may be none.
  const Term padded = rows.pad(2, before, size - before);
  const Term means =
      part(formula.apply(ops::kAvgPool1d, {padded}, {{"kernel", Axes{size}}}), 2, context.dim(0), dims[1]);
  return (means * static_cast<double>(size)).transpose({0, 2, 1}).reshape_to(dims);
}

// y = x * s^-beta, s = bias + c * sum(x^2), c = alpha / size:
// dx = dy * s^-beta - 2 * c * beta * x * sums(dy * x * s^(-beta - 1)), over the windows that contain a channel.
Status local_response_norm(GradientBuilder& g) {
  if (!g.wants(0)) return g.status();
  const Term x = g.arg(0), dy = g.cotangent();
  const int64_t size = int_attr(g, "size");
  const double beta = float_attr(g, "beta"), c = float_attr(g, "alpha") / static_cast<double>(size);
  const Term sum = channel_sums(x * x, size, (size - 1) / 2) * c + float_attr(g, "bias");
  const Term part = dy * g.apply(ops::kPower, {sum, g.scalar(-beta, x.dtype())});
  g.add(0, part - x * channel_sums(part * x / sum, size, size / 2) * (2 * c * beta));
  return g.status();
}

constexpr GradientRow kNormalizations[] = {
    {ops::kBatchNorm, batch_norm},
    {ops::kLayerNorm, [](GradientBuilder& g) { return over_last_dims(g, true); }},
    {ops::kRmsNorm, [](GradientBuilder& g) { return over_last_dims(g, false); }},
    {ops::kInstanceNorm,
     [](GradientBuilder& g) { return g.ok() ? over_groups(g, g.cotangent().dims()[1]) : g.status(); }},
    {ops::kGroupNorm,
     [](GradientBuilder& g) { return over_groups(g, g.builder().context().dim(int_attr(g, "groups"))); }},
    {ops::kLpNormalize, lp_normalize, "0 where the norm is 0"},
    {ops::kLocalResponseNorm, local_response_norm},
};

}  // namespace

std::span<const GradientRow> normalize_gradients() { return kNormalizations; }

}  // namespace tenon::compiler::gradients
