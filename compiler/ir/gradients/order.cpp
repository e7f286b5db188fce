// Gradients of sorting and searching: dy is added where the elements came from.
#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler::gradients {
namespace {

// The elements of dy along `axis` at the indices from which they were taken.
Term at_sources(GradientBuilder& g, const Term& sources, const Term& dy, int64_t axis) {
  return g.apply(ops::kScatterElements, {zeros_like(g.arg(0)), sources, dy},
                 {{"axis", axis}, {"reduction", std::string("add")}});
}

constexpr GradientRow kOrdered[] = {
    {ops::kTopK,
     [](GradientBuilder& g) {
       const auto dy = g.cotangent(0);
       if (dy && g.wants(0)) g.add(0, at_sources(g, g.result(1), *dy, int_attr(g, "axis")));
       return g.status();
     },
     "of equal elements, that of the first ones"},
    {ops::kSort,
     [](GradientBuilder& g) {
       if (!g.wants(0)) return g.status();
       const Term sources = g.apply(ops::kArgSort, {g.arg(0)}, g.attrs());
       g.add(0, at_sources(g, sources, g.cotangent(), int_attr(g, "axis")));
       return g.status();
     },
     "equal elements keep their order"},
    {ops::kUnique, nullptr, "how many distinct elements there are changes with any of them"},
    {ops::kCompress,
     [](GradientBuilder& g) {
       if (!g.wants(0)) return g.status();
       const Term x = g.arg(0), taken = g.named(g.apply(ops::kNonzero, {g.arg(1)})).squeeze({0});
       g.add(0, add_at(x.dims(), axis_attr(g, "axis", x.rank()), taken, g.cotangent()));
       return g.status();
     }},
};

}  // namespace

std::span<const GradientRow> order_gradients() { return kOrdered; }

}  // namespace tenon::compiler::gradients
