// Gradients of operators that move elements: dy, moved back.
#include <algorithm>

#include "compiler/ir/gradients/rules.h"
#include "runtime/reference/layout.h"

namespace tenon::compiler::gradients {
namespace {

Status transpose(GradientBuilder& g) {
  if (!g.wants(0)) return g.status();
  const auto& axes = ints_attr(g, "axes");
  std::vector<int64_t> back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) back[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
  g.add(0, g.cotangent().transpose(std::move(back)));
  return g.status();
}

Status concat(GradientBuilder& g) {
  const Term dy = g.cotangent();
  if (!g.ok()) return g.status();
  Context& context = g.builder().context();
  const int64_t axis = axis_attr(g, "axis", dy.rank());
  Dim begin = context.dim(0);
  for (size_t i = 0; i < g.num_args(); ++i) {
    const Dim size = g.arg(i).dims()[static_cast<size_t>(axis)];
    if (g.wants(i)) g.add(i, part(dy, axis, begin, size));
    begin = context.add(begin, size);
  }
  return g.status();
}

// The value of an attribute at an axis, where it is a constant.
std::optional<int64_t> constant_at(const GradientBuilder& g, const std::string& name, size_t axis) {
  if (!g.computed().contains(name)) return ints_attr(g, name)[axis];
  const auto* dims = std::get_if<Dims>(&g.computed().find(name)->second);
  return dims ? (*dims)[axis].constant() : std::nullopt;
}

// Steps of 1 from a constant index are padded back; other elements are added at their indices, the slice of 0, 1, ...
Status slice(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  Context& context = g.builder().context();
  const Dim none = context.dim(0);
  const Dims x = g.arg(0).dims();
  Term dy = g.cotangent();
  Dims before(x.size(), none), after = before;
  std::vector<size_t> indexed;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto begin = constant_at(g, "begin", i), end = constant_at(g, "end", i);
    if (constant_at(g, "step", i) != 1 || !begin || !(begin == 0 || x[i].constant() || begin < 0 || end == INT64_MAX)) {
      indexed.push_back(i);
      continue;
    }
    if (begin == 0 && end == INT64_MAX) continue;
    const Dim start = *begin < 0 ? context.maximum({context.add(x[i], context.dim(*begin)), none})
                                 : context.minimum({context.dim(*begin), x[i]});
    before[i] = start;
    after[i] = context.maximum({context.subtract(x[i], context.add(start, dy.dims()[i])), none});
  }
  Attributes padding;
  padding.set("before", before);
  padding.set("after", after);
  if (before != Dims(x.size(), none) || after != before) dy = apply(ops::kPad, {dy}, std::move(padding));
  for (const size_t i : indexed) {
    Attributes attributes;
    for (const char* name : {"begin", "end", "step"}) set_from_axis(g, name, static_cast<int64_t>(i), attributes);
    const Term taken = g.named(apply(ops::kSlice, {indices_below(g, x[i])}, std::move(attributes)));
    Dims dims = dy.dims();
    if (!g.ok()) break;
    dims[i] = x[i];
    dy = add_at(dims, static_cast<int64_t>(i), taken, dy);
  }
  g.add(0, dy);
  return g.status();
}

// The part of dy inside of the padding.
Status pad(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  const Dims x = g.arg(0).dims();
  const auto found = g.computed().find("before");
  if (found != g.computed().end() && std::holds_alternative<Atom>(found->second)) {
    const Term before(g, std::get<Atom>(found->second));
    Attributes attributes;
    attributes.set("begin", before);
    attributes.set("end", before + g.apply(ops::kShapeOf, {g.arg(0)}));
    attributes.attrs.emplace("step", std::vector<int64_t>(x.size(), 1));
    g.add(0, g.named(apply(ops::kSlice, {g.cotangent()}, std::move(attributes))));
    return g.status();
  }
  Dims before;
  if (found != g.computed().end()) before = std::get<Dims>(found->second);
  for (size_t i = 0; before.size() < x.size(); ++i)
    before.push_back(g.builder().context().dim(ints_attr(g, "before")[i]));
  g.add(0, part(g.cotangent(), before, x));
  return g.status();
}

// dy in the layout of x. Where the result is in blocks, the channels of x tell where the last block ends.
Status layout_transform(GradientBuilder& g) {
  using runtime::reference::Layout;
  if (!g.wants(0) || !g.ok()) return g.status();
  const auto from = Layout::parse(string_attr(g, "from")), to = Layout::parse(string_attr(g, "to"));
  if (!from || !to) return std::unexpected(from ? to.error() : from.error());
  int64_t channels = 0;
  if (to->block) {
    const auto axis = static_cast<size_t>(std::ranges::find(from->axes, to->blocked) - from->axes.begin());
    const bool in_blocks = from->blocked == to->blocked;
    const auto size = g.arg(0).dims()[axis].constant();
    channels = in_blocks ? int_attr(g, "channels") : size.value_or(0);
    if (in_blocks && channels == 0) channels = size.value_or(0) * from->block;
  }
  g.add(0, g.apply(ops::kLayoutTransform, {g.cotangent()},
                   {{"from", string_attr(g, "to")}, {"to", string_attr(g, "from")}, {"channels", channels}})
               .reshape_to(g.arg(0).dims()));
  return g.status();
}

constexpr GradientRow kShapes[] = {
    {ops::kFlatten, same_elements},
    {ops::kReshape, same_elements},
    {ops::kTranspose, transpose},
    {ops::kConcat, concat},
    {ops::kSlice, slice},
    {ops::kPad, pad},
    {ops::kLayoutTransform, layout_transform},
};

}  // namespace

std::span<const GradientRow> shape_gradients() { return kShapes; }

}  // namespace tenon::compiler::gradients
