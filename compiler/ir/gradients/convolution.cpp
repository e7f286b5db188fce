// Gradients of convolutions and their transposes. The gradient by x of one is the other one; the gradient by the
// weights is the sum of products of dy and the elements under each weight.
#include "compiler/ir/gradients/windows.h"

namespace tenon::compiler::gradients {
namespace {

// Products for one position of the kernel each do without copies of the elements for all windows; beyond so many there
// are too many kernels.
constexpr int64_t kMostPositions = 64;

std::vector<int64_t> kernel_of(const Term& w) {
  std::vector<int64_t> kernel;
  for (int64_t i = 2; i < w.rank(); ++i) kernel.push_back(w.size(i).value_or(1));
  return kernel;
}

// One position in the kernel: the elements [N, C, count...] of padded x that it is multiplied by.
Term position_elements(const Term& padded, const std::vector<WindowAxis>& axes, std::span<const int64_t> position,
                       const Dims& counts) {
  Context& context = padded.formula().builder().context();
  Term elements = padded;
  Dims begin(padded.dims().size(), context.dim(0)), sizes = padded.dims();
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto at = static_cast<int64_t>(2 + i);
    WindowAxis axis = axes[i];
    const int64_t first = position[i] * axis.dilation;
    sizes[2 + i] = counts[2 + i];
    if (axis.stride == 1) {
      begin[2 + i] = context.dim(first);
      continue;
    }
    axis.before = -first;
    axis.kernel = 1;
    elements = gather(elements, window_indices(elements.formula(), axis), at);
    Dims dims = elements.dims();
    dims.erase(dims.begin() + at + 1);
    elements = elements.reshape_to(dims);
  }
  elements = part(elements, begin, sizes);
  return elements;
}

// The gradient by weights of the dims `weights`, [O, C / groups, kernel...]: for each, the sum of dy [N, O, count...]
// times the elements of x [N, C, size...] under it.
Term weight_gradient(const Term& x, const Term& dy, const std::vector<WindowAxis>& axes, int64_t groups,
                     double pad_value, const Dims& weights) {
  Formula& formula = x.formula();
  if (!formula.ok()) return x;
  Context& context = formula.builder().context();
  const auto grouped = [&](const Term& term, Dim channels) {
    Dims dims = term.dims();
    if (dims.empty()) return term;
    dims[1] = channels;
    dims.insert(dims.begin() + 1, context.dim(groups));
    return term.reshape_to(dims);
  };
  const std::string counts = std::string("opq").substr(0, axes.size()),
                    kernel = std::string("ijk").substr(0, axes.size());
  const Term outputs = grouped(dy, context.floor_divide(weights[0], context.dim(groups)));
  int64_t positions = 1;
  for (const WindowAxis& axis : axes) positions *= axis.kernel;
  if (positions > kMostPositions) {
    std::string right = "nzc";
    for (size_t i = 0; i < axes.size(); ++i) right += {counts[i], kernel[i]};
    const Term elements = window_elements(x, axes, pad_value);
    return einsum("nzm" + counts + "," + right + "->zmc" + kernel, outputs, grouped(elements, weights[1]))
        .reshape_to(weights);
  }
  Term padded = x;
  for (size_t i = 0; i < axes.size(); ++i)
    padded = padded.pad(static_cast<int64_t>(2 + i), axes[i].before, axes[i].after, pad_value);
  std::vector<Term> products;
  std::vector<int64_t> position(axes.size(), 0);
  for (int64_t i = 0; i < positions; ++i) {
    const Term elements = grouped(position_elements(padded, axes, position, dy.dims()), weights[1]);
    products.push_back(einsum("nzm" + counts + ",nzc" + counts + "->zmc", outputs, elements)
                           .reshape_to({weights[0], weights[1], context.dim(1)}));
    for (size_t axis = axes.size(); axis-- > 0 && ++position[axis] == axes[axis].kernel;) position[axis] = 0;
  }
  return formula.apply(ops::kConcat, products, {{"axis", 2}}).reshape_to(weights);
}

Status convolution(GradientBuilder& g) {
  const Term x = g.arg(0), w = g.arg(1), dy = g.with_sizes(g.cotangent());
  if (!g.ok()) return g.status();
  const std::vector<WindowAxis> axes = window_axes(g, x.dims(), dy.dims(), kernel_of(w));
  const int64_t groups = int_attr(g, "groups");
  if (g.wants(0)) g.add(0, spread_windows(dy, w, axes, groups));
  if (g.wants(1))
    g.add(1, weight_gradient(x, dy, axes, groups, static_cast<double>(int_attr(g, "pad_value")), w.dims()));
  return g.status();
}

// y has a window for each element of x.
Status transposed(GradientBuilder& g) {
  const Term x = g.arg(0), w = g.arg(1), dy = g.cotangent();
  if (!g.ok()) return g.status();
  const int64_t groups = int_attr(g, "groups");
  if (g.wants(0)) {
    constexpr OperatorId kOperators[] = {ops::kConv1d, ops::kConv2d, ops::kConv3d};
    Attrs attrs = g.attrs();
    attrs.erase("output_padding");
    const Term windows = g.apply(kOperators[w.rank() - 3], {dy, w}, std::move(attrs));
    // An output padding of a stride or more has windows of its own.
    g.add(0, part(windows, Dims(x.dims().size(), g.builder().context().dim(0)), x.dims()));
  }
  if (g.wants(1)) {
    const Term maps = g.with_sizes(x);
    const std::vector<WindowAxis> axes = window_axes(g, dy.dims(), maps.dims(), kernel_of(w));
    g.add(1, weight_gradient(dy, maps, axes, groups, 0, w.dims()));
  }
  return g.status();
}

constexpr GradientRow kConvolutions[] = {
    {ops::kConv1d, convolution},         {ops::kConv2d, convolution},         {ops::kConv3d, convolution},
    {ops::kConv1dTranspose, transposed}, {ops::kConv2dTranspose, transposed}, {ops::kConv3dTranspose, transposed},
};

}  // namespace

std::span<const GradientRow> convolution_gradients() { return kConvolutions; }

}  // namespace tenon::compiler::gradients
