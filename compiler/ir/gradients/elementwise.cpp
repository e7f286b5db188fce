// Gradients of copies, casts, selections and biases.
#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler::gradients {
namespace {

// The adjoint of b is summed over all axes of x but one.
Status bias_add(GradientBuilder& g) {
  const Term dy = g.cotangent();
  if (g.wants(0)) g.add(0, dy);
  if (!g.wants(1)) return g.status();
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < dy.rank(); ++i) {
    if (i != axis_attr(g, "axis", dy.rank())) axes.push_back(i);
  }
  g.add(1, axes.empty() ? dy : dy.reduce(ops::kSum, std::move(axes)));
  return g.status();
}

constexpr GradientRow kElementwise[] = {
    {ops::kIdentity, same_elements},
    {ops::kStopGradient, [](GradientBuilder& g) { return g.status(); }, "0"},
    {ops::kBitcast, nullptr, "the bits of a float are no continuous function of it"},
    {ops::kCast,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent().cast(g.arg(0).dtype()));
       return g.status();
     },
     "that of the cast between exact numbers"},
    {ops::kSelect,
     [](GradientBuilder& g) {
       if (g.wants(1)) g.add(1, keep_where(g.arg(0), g.cotangent()));
       if (g.wants(2)) g.add(2, drop_where(g.arg(0), g.cotangent()));
       return g.status();
     }},
    {ops::kBiasAdd, bias_add},
};

}  // namespace

std::span<const GradientRow> elementwise_gradients() { return kElementwise; }

}  // namespace tenon::compiler::gradients
