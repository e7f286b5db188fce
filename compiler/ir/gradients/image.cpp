// Gradients of resampling.
#include "compiler/ir/gradients/rules.h"

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

constexpr GradientRow kImages[] = {
    {ops::kResize, resize},
};

}  // namespace

std::span<const GradientRow> image_gradients() { return kImages; }

}  // namespace tenon::compiler::gradients
