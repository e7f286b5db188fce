// Gradients of rearrangements: the elements of dy are moved back, and summed where one was repeated.
#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler::gradients {
namespace {

// The adjoints of the parts, one after the other; zeros for a part without one.
Status split(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  const TupleType* parts = g.builder().type_of(g.result().atom())->tuple();
  std::vector<Term> adjoints;
  for (uint32_t k = 0; k < parts->fields.size(); ++k) {
    const auto dy = g.cotangent(k);
    adjoints.push_back(dy ? *dy : zeros_like(g.result(k)));
  }
  g.add(0, concat(adjoints, int_attr(g, "axis")));
  return g.status();
}

Status stack(GradientBuilder& g) {
  const Term dy = g.cotangent();
  const int64_t axis = axis_attr(g, "axis", dy.rank());
  for (size_t i = 0; i < g.num_args(); ++i) {
    const auto index = static_cast<int64_t>(i);
    if (g.wants(i)) g.add(i, dy.slice(axis, index, index + 1).squeeze({axis}));
  }
  return g.status();
}

// The sum of dy over r repetitions of x: dims [r0 * x0, r1 * x1, ...], where r is constant, symbolic or a vector.
Term sum_of_repetitions(GradientBuilder& g, const Term& dy, const ComputedAttr& repeats) {
  const Term x = g.arg(0);
  const Dims dims = x.dims();
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(2 * i);
  if (axes.empty()) return dy;
  if (const auto* given = std::get_if<Dims>(&repeats)) {
    Dims split;
    for (size_t i = 0; i < dims.size(); ++i) split.insert(split.end(), {(*given)[i], dims[i]});
    return dy.reshape_to(split).reduce(ops::kSum, std::move(axes));
  }
  const Term sizes = g.apply(ops::kShapeOf, {x});
  const Term split = g.apply(ops::kStack, {Term(g, std::get<Atom>(repeats)), sizes}, {{"axis", int64_t{1}}});
  Attributes shape;
  shape.set("shape", split.reshape({2 * x.rank()}));
  shape.attrs.emplace("zero", int64_t{1});
  return g.named(apply(ops::kReshape, {dy}, std::move(shape))).reduce(ops::kSum, std::move(axes));
}

Status tile(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  const auto computed = g.computed().find("repeats");
  ComputedAttr repeats;
  if (computed != g.computed().end()) {
    repeats = computed->second;
  } else {
    Dims dims;
    for (const int64_t count : ints_attr(g, "repeats")) dims.push_back(g.builder().context().dim(count));
    repeats = std::move(dims);
  }
  g.add(0, sum_of_repetitions(g, g.cotangent(), repeats));
  return g.status();
}

// Which sizes were repeated is known at run time: those of which dy has a multiple.
Status broadcast_dynamic(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  const Term x = g.arg(0);
  Term dy = g.cotangent();
  std::vector<int64_t> leading;
  for (int64_t i = x.rank(); i < dy.rank(); ++i) leading.push_back(i - x.rank());
  if (!leading.empty()) dy = dy.reduce(ops::kSum, std::move(leading));
  const Term one = g.scalar(1, DType::kI64);
  const Term sizes = g.apply(ops::kMaximum, {g.apply(ops::kShapeOf, {x}), one});
  g.add(0, sum_of_repetitions(g, dy, (g.apply(ops::kShapeOf, {dy}) / sizes).atom()));
  return g.status();
}

// dy is added at the indices of the elements that the padding repeats: those that it selects of 0, 1, ...
Status padding(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  const Dims x = g.arg(0).dims();
  Term dy = g.cotangent();
  for (size_t i = 0; i < x.size() && g.ok(); ++i) {
    if (dy.dims()[i] == x[i]) continue;
    const auto axis = static_cast<int64_t>(i);
    Attributes attributes;
    for (const char* name : {"before", "after"}) set_from_axis(g, name, axis, attributes);
    const Term taken = g.named(apply(g.op().id, {indices_below(g, x[i])}, std::move(attributes)));
    Dims dims = dy.dims();
    dims[i] = x[i];
    dy = add_at(dims, axis, taken, dy);
  }
  g.add(0, dy);
  return g.status();
}

// dy as [N, C', H, a, W, b], whose axes are moved in front of the channels or behind them.
Status depth_to_space(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  Context& context = g.builder().context();
  const Dims x = g.arg(0).dims(), y = g.cotangent().dims();
  const Dim block = context.dim(int_attr(g, "block"));
  const bool blocks_first = string_attr(g, "order") == "DCR";
  const Term split = g.cotangent().reshape_to({x[0], y[1], x[2], block, x[3], block});
  const std::vector<int64_t> axes =
      blocks_first ? std::vector<int64_t>{0, 3, 5, 1, 2, 4} : std::vector<int64_t>{0, 1, 3, 5, 2, 4};
  g.add(0, split.transpose(axes).reshape_to(x));
  return g.status();
}

constexpr GradientRow kArranged[] = {
    {ops::kSplit, split},
    {ops::kStack, stack},
    {ops::kTile, tile},
    {ops::kBroadcastDynamic, broadcast_dynamic},
    {ops::kReverseSequence,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.apply_to({g.cotangent(), g.arg(1)}));
       return g.status();
     }},
    {ops::kPadEdge, padding},
    {ops::kPadReflect, padding},
    {ops::kPadWrap, padding},
    {ops::kTriangle, same_again},
    {ops::kDepthToSpace, depth_to_space},
    {ops::kSpaceToDepth,
     [](GradientBuilder& g) {
       if (!g.wants(0)) return g.status();
       g.add(0, g.apply(ops::kDepthToSpace, {g.cotangent()}, g.attrs()).reshape_to(g.arg(0).dims()));
       return g.status();
     }},
    {ops::kBroadcastTo,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent());
       return g.status();
     }},
    {ops::kSqueeze, same_elements},
    {ops::kExpandDims, same_elements},
    {ops::kReverse, same_again},
};

}  // namespace

std::span<const GradientRow> arrange_gradients() { return kArranged; }

}  // namespace tenon::compiler::gradients
