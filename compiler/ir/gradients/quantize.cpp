// Gradients of conversions between real and quantized values. Integers have none, which leaves the scale of dynamic
// quantization.
#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler::gradients {
namespace {

// scale = (max(0, x) - min(0, x)) / 255: equal largest or smallest elements share its adjoint evenly.
Status dynamic_quantize(GradientBuilder& g) {
  const auto dy = g.cotangent(1);
  if (!dy || !g.wants(0)) return g.status();
  const Term x = g.arg(0);
  for (const bool largest : {true, false}) {
    const Term best = x.reduce(largest ? ops::kMax : ops::kMin, {});
    const Term zero = g.scalar(0, x.dtype());
    const Term counts = both(equal(x, best), largest ? less(zero, x) : less(x, zero)).cast(x.dtype());
    const Term share = counts / g.apply(ops::kMaximum, {counts.reduce(ops::kSum, {}), g.scalar(1, x.dtype())});
    g.add(0, share * *dy * (largest ? 1.0 / 255 : -1.0 / 255));
  }
  return g.status();
}

constexpr GradientRow kQuantized[] = {
    {ops::kDynamicQuantize, dynamic_quantize, "of the scale; equal extremes share it evenly, and it is 0 at 0"},
};

}  // namespace

std::span<const GradientRow> quantize_gradients() { return kQuantized; }

}  // namespace tenon::compiler::gradients
