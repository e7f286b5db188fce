#include "compiler/ir/gradients/rules.h"

#include <algorithm>

namespace tenon::compiler::gradients {

Status same_again(GradientBuilder& g) {
  if (g.wants(0)) g.add(0, g.apply_to({g.cotangent()}));
  return g.status();
}

Status same_elements(GradientBuilder& g) {
  if (g.wants(0)) g.add(0, reshaped_like(g.cotangent(), g.arg(0)));
  return g.status();
}

Term reshaped_like(const Term& value, const Term& x) {
  Formula& formula = x.formula();
  if (!formula.ok()) return x;
  const Dims from = value.dims(), to = x.dims();
  Context& context = formula.builder().context();
  const DimProver prover(context);
  if (formula.proved_sizes(to) == to && prover.equal(context.product(from), context.product(to)) == Answer::kYes)
    return value.reshape_to(to);
  Attributes shape;
  shape.set("shape", formula.apply(ops::kShapeOf, {x}));
  shape.attrs.emplace("zero", int64_t{1});
  return formula.checked(apply(ops::kReshape, {value}, std::move(shape)), to);
}

void Attributes::set(std::string name, Dims dims) {
  auto [constant, symbolic] = sizes_attribute(std::move(name), dims);
  attrs.merge(constant);
  computed.merge(symbolic);
}

Term apply(OperatorId op, const std::vector<Term>& args, Attributes attributes) {
  return args.front().formula().apply(op, args, std::move(attributes.attrs), std::move(attributes.computed));
}

void set_from_axis(GradientBuilder& g, const std::string& name, int64_t axis, Attributes& attributes) {
  const auto found = g.computed().find(name);
  if (found == g.computed().end()) {
    attributes.attrs.emplace(name, std::vector<int64_t>{ints_attr(g, name)[static_cast<size_t>(axis)]});
  } else if (const auto* dims = std::get_if<Dims>(&found->second)) {
    attributes.set(name, Dims{(*dims)[static_cast<size_t>(axis)]});
  } else {
    attributes.set(name, Term(g, std::get<Atom>(found->second)).slice(0, axis, axis + 1));
  }
}

double float_attr(const GradientBuilder& g, std::string_view name) {
  return std::get<double>(g.attrs().find(name)->second);
}
int64_t int_attr(const GradientBuilder& g, std::string_view name) {
  return std::get<int64_t>(g.attrs().find(name)->second);
}
const std::vector<int64_t>& ints_attr(const GradientBuilder& g, std::string_view name) {
  return std::get<std::vector<int64_t>>(g.attrs().find(name)->second);
}
const std::string& string_attr(const GradientBuilder& g, std::string_view name) {
  return std::get<std::string>(g.attrs().find(name)->second);
}
int64_t axis_attr(const GradientBuilder& g, std::string_view name, int64_t rank) {
  const int64_t axis = int_attr(g, name);
  return axis < 0 ? axis + rank : axis;
}

Term zeros_like(const Term& x) { return x.formula().full(x.dims(), 0, x.dtype()); }

Term indices_below(Formula& formula, Dim count) {
  if (!formula.ok()) return {formula, Atom()};
  if (const auto size = count.constant()) return formula.apply(ops::kArange, {}, {{"count", *size}});
  return formula.checked(formula.apply(ops::kArange, {}, {}, {{"count", formula.proved_sizes({count})}}), {count});
}

Term unit_matrix(Formula& formula, Dim size, DType dtype) {
  if (!formula.ok()) return {formula, Atom()};
  Attributes attributes;
  for (const char* name : {"rows", "columns"}) {
    if (const auto value = size.constant()) attributes.attrs.emplace(name, *value);
    else attributes.computed.emplace(name, formula.proved_sizes({size}));
  }
  attributes.attrs.emplace("dtype", std::string(runtime::name(dtype)));
  return formula.checked(formula.apply(ops::kEye, {}, std::move(attributes.attrs), std::move(attributes.computed)),
                         {size, size});
}

Term size_value(Formula& formula, Dim dim, DType dtype) {
  if (const auto size = dim.constant()) return formula.scalar(static_cast<double>(*size), dtype);
  return formula.term(formula.builder().dim_value(dim)).cast(dtype);
}

Term keep_where(const Term& condition, const Term& x) { return select(condition, x, x.formula().scalar(0, x.dtype())); }
Term drop_where(const Term& condition, const Term& x) { return select(condition, x.formula().scalar(0, x.dtype()), x); }

Term part(const Term& x, const Dims& begin, const Dims& sizes) {
  Formula& formula = x.formula();
  if (!formula.ok() || x.dims() == sizes) return x;
  Context& context = formula.builder().context();
  Dims end;
  for (size_t i = 0; i < begin.size(); ++i) end.push_back(context.add(begin[i], sizes[i]));
  Attributes attributes;
  attributes.set("begin", begin);
  attributes.set("end", std::move(end));
  attributes.set("step", Dims(begin.size(), context.dim(1)));
  return formula.checked(apply(ops::kSlice, {x}, std::move(attributes)), sizes);
}

Term part(const Term& x, int64_t axis, Dim begin, Dim size) {
  if (!x.formula().ok()) return x;
  Dims sizes = x.dims(), begins(sizes.size(), x.formula().builder().context().dim(0));
  sizes[static_cast<size_t>(axis)] = size;
  begins[static_cast<size_t>(axis)] = begin;
  return part(x, begins, sizes);
}

Term along(const Term& x, int64_t axis, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) axes.push_back(i);
  }
  return axes.empty() ? x : x.expand_dims(std::move(axes));
}

Term add_at(const Dims& dims, int64_t axis, const Term& indices, const Term& updates) {
  Formula& formula = updates.formula();
  if (!formula.ok()) return updates;
  const auto rank = static_cast<int64_t>(dims.size()), depth = indices.rank();
  // scatter_nd adds to parts of the leading dim.
  Dims target{dims[static_cast<size_t>(axis)]};
  std::vector<int64_t> first, back;  // the axis, or the axes of the indices, become the first ones; and the inverse
  for (int64_t i = 0; i < depth; ++i) first.push_back(axis + i);
  for (int64_t i = 0; i < rank; ++i) {
    if (i == axis) back.push_back(0);
    else back.push_back(i < axis ? i + 1 : i);
    if (i == axis) continue;
    target.push_back(dims[static_cast<size_t>(i)]);
    first.push_back(i < axis ? i : i - 1 + depth);
  }
  const Term leading = std::ranges::is_sorted(first) ? updates : updates.transpose(std::move(first));
  const Term sum =
      formula.apply(ops::kScatterNd, {formula.full(target, 0, updates.dtype()), indices.expand_dims({depth}), leading},
                    {{"reduction", std::string("add")}});
  return axis == 0 ? sum : sum.transpose(std::move(back));
}

Term unreduced(GradientBuilder& g, const Term& value) {
  if (!g.ok()) return value;
  const Term x = g.arg(0);
  if (g.computed().contains("axes")) {  // the reduction itself tells which sizes become 1
    Attrs attrs = g.attrs();
    attrs.insert_or_assign("keep", int64_t{1});
    const Term kept = reshaped_like(value, g.named(g.apply(g.op().id, {x}, std::move(attrs), g.computed())));
    return g.checked(g.apply(ops::kBroadcastDynamic, {kept, g.apply(ops::kShapeOf, {x})}), x.dims());
  }
  if (int_attr(g, "keep") == 1) return value;
  std::vector<bool> reduced(static_cast<size_t>(x.rank()), ints_attr(g, "axes").empty());
  for (const int64_t axis : ints_attr(g, "axes"))
    reduced[static_cast<size_t>(axis < 0 ? axis + x.rank() : axis)] = true;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (reduced[i]) axes.push_back(static_cast<int64_t>(i));
  }
  return axes.empty() ? value : value.expand_dims(std::move(axes));
}

}  // namespace tenon::compiler::gradients
