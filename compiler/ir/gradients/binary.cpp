// Gradients of arithmetic with broadcasting; GradientBuilder::add sums over what was broadcast.
#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler::gradients {
namespace {

// dy at the argument that is the result, half of it at both where they are equal. `not_a`: where b is the result.
Status chosen(GradientBuilder& g, const Term& not_a, const Term& not_b) {
  const Term dy = select(equal(g.arg(0), g.arg(1)), g.cotangent() * 0.5, g.cotangent());
  if (g.wants(0)) g.add(0, drop_where(not_a, dy));
  if (g.wants(1)) g.add(1, drop_where(not_b, dy));
  return g.status();
}

// b * a^(b - 1), and y * log(a). PyTorch: 0 by a where b = 0, and 0 by b where a = 0 and b >= 0.
Status power(GradientBuilder& g) {
  const Term a = g.arg(0), b = g.arg(1), dy = g.cotangent();
  if (g.wants(0)) g.add(0, drop_where(equal(b, 0), dy * b * g.apply(ops::kPower, {a, b - 1})));
  if (g.wants(1)) {
    const Term none = both(equal(a, 0), less_equal(g.scalar(0, b.dtype()), b));
    g.add(1, drop_where(none, dy * g.result() * log(a)));
  }
  return g.status();
}

// a - n * b, with an n that is constant wherever it has a derivative.
Status remaining(GradientBuilder& g, const Term& n) {
  if (g.wants(0)) g.add(0, g.cotangent());
  if (g.wants(1)) g.add(1, -(g.cotangent() * n));
  return g.status();
}

constexpr GradientRow kBinary[] = {
    {ops::kAdd,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent());
       if (g.wants(1)) g.add(1, g.cotangent());
       return g.status();
     }},
    {ops::kSubtract,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent());
       if (g.wants(1)) g.add(1, -g.cotangent());
       return g.status();
     }},
    {ops::kMultiply,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent() * g.arg(1));
       if (g.wants(1)) g.add(1, g.cotangent() * g.arg(0));
       return g.status();
     }},
    {ops::kDivide,
     [](GradientBuilder& g) {
       const Term part = g.cotangent() / g.arg(1);
       if (g.wants(0)) g.add(0, part);
       if (g.wants(1)) g.add(1, -(part * g.result()));
       return g.status();
     }},
    {ops::kFloorDivide, zero, "0 everywhere"},
    {ops::kRemainder, [](GradientBuilder& g) { return remaining(g, g.apply(ops::kTrunc, {g.arg(0) / g.arg(1)})); },
     "1 by a and -trunc(a / b) by b, at the jumps also"},
    {ops::kModulo,
     [](GradientBuilder& g) {
       return remaining(g, g.apply(ops::kFloorDivide, {g.arg(0), g.arg(1)}));
     },
     "1 by a and -floor(a / b) by b, at the jumps also"},
    {ops::kPower, power, "0 by a where b = 0, and 0 by b where a = 0 and b >= 0"},
    {ops::kMaximum, [](GradientBuilder& g) { return chosen(g, less(g.arg(0), g.arg(1)), less(g.arg(1), g.arg(0))); },
     "half for each where a = b"},
    {ops::kMinimum, [](GradientBuilder& g) { return chosen(g, less(g.arg(1), g.arg(0)), less(g.arg(0), g.arg(1))); },
     "half for each where a = b"},
};

}  // namespace

std::span<const GradientRow> binary_gradients() { return kBinary; }

}  // namespace tenon::compiler::gradients
