// Gradients of gather and scatter: dy is added where elements were taken, and taken where they were added.
#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler::gradients {
namespace {

// scatter_elements and scatter_nd, and what takes the elements at their indices.
struct Scatter {
  GradientBuilder& g;
  bool elements = g.op().is(ops::kScatterElements);

  Term scatter(const Term& x, const Term& updates, const char* reduction) const {
    Attrs attrs = g.attrs();
    attrs.insert_or_assign("reduction", std::string(reduction));
    return g.apply(g.op().id, {x, g.arg(1), updates}, std::move(attrs));
  }
  Term taken(const Term& x) const {
    if (elements) return g.apply(ops::kGatherElements, {x, g.arg(1)}, {{"axis", int_attr(g, "axis")}});
    return g.apply(ops::kGatherNd, {x, g.arg(1)});
  }
  // Whether each update is the one that stays: the last one written at its index.
  Term stays() const {
    const Term updates = g.arg(2);
    if (!g.ok()) return updates;
    const Dims dims = updates.dims();
    const Dim count = g.builder().context().product(dims);
    const Term order = indices_below(g, count).reshape_to(dims);
    return equal(taken(scatter(g.full(g.arg(0).dims(), -1, DType::kI64), order, "none")), order);
  }
};

// y has x at all indices without an update, and the last update elsewhere.
Status replaced(const Scatter& s) {
  GradientBuilder& g = s.g;
  const Term dy = g.cotangent();
  if (g.wants(0)) g.add(0, s.scatter(dy, zeros_like(g.arg(2)), "none"));
  if (g.wants(2)) g.add(2, keep_where(s.stays(), s.taken(dy)));
  return g.status();
}

// The elements that equal the largest or smallest one at their index share dy evenly.
Status extreme_at(const Scatter& s) {
  GradientBuilder& g = s.g;
  const Term x = g.arg(0), y = g.result(), dy = g.cotangent();
  const Term of_x = equal(x, y).cast(x.dtype()), of_updates = equal(g.arg(2), s.taken(y)).cast(x.dtype());
  const Term share = dy / s.scatter(of_x, of_updates, "add");
  if (g.wants(0)) g.add(0, of_x * share);
  if (g.wants(2)) g.add(2, of_updates * s.taken(share));
  return g.status();
}

// dy times the product of the other factors at the index: of those that are not 0, where no other factor is.
Status product_at(const Scatter& s) {
  GradientBuilder& g = s.g;
  const Term x = g.arg(0), updates = g.arg(2), dy = g.cotangent();
  const auto ones = [](const Term& term) { return term.formula().full(term.dims(), 1, term.dtype()); };
  const Term no_x = equal(x, 0), no_update = equal(updates, 0);
  const Term some_x = select(no_x, ones(x), x), some_update = select(no_update, ones(updates), updates);
  const Term product = dy * s.scatter(some_x, some_update, "mul");
  const Term none = s.scatter(no_x.cast(x.dtype()), no_update.cast(x.dtype()), "add");
  if (g.wants(0)) g.add(0, keep_where(equal(none, no_x.cast(x.dtype())), product / some_x));
  if (g.wants(2)) {
    const Term alone = equal(s.taken(none), no_update.cast(x.dtype()));
    g.add(2, keep_where(alone, s.taken(product) / some_update));
  }
  return g.status();
}

Status scatter(GradientBuilder& g) {
  const Scatter s{g};
  const std::string& reduction = string_attr(g, "reduction");
  if (reduction == "none") return replaced(s);
  if (reduction == "mul") return product_at(s);
  if (reduction == "max" || reduction == "min") return extreme_at(s);
  if (g.wants(0)) g.add(0, g.cotangent());
  if (g.wants(2)) g.add(2, s.taken(g.cotangent()));
  return g.status();
}

// With batch dims, the indices of the batch become part of the index tuples.
Status gather_nd(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  const Term x = g.arg(0);
  Term indices = g.arg(1);
  const int64_t batch = int_attr(g, "batch_dims"), rank = indices.rank();
  if (batch > 0) {
    Dims dims = indices.dims();
    dims.back() = g.builder().context().dim(1);
    std::vector<Term> tuples;
    for (int64_t i = 0; i < batch; ++i) {
      const Term own = along(indices_below(g, dims[static_cast<size_t>(i)]), i, rank);
      tuples.push_back(own.broadcast_to(dims).cast(indices.dtype()));
    }
    tuples.push_back(indices);
    indices = concat(tuples, rank - 1);
  }
  g.add(0, g.apply(ops::kScatterNd, {zeros_like(x), indices, g.cotangent()}, {{"reduction", std::string("add")}}));
  return g.status();
}

constexpr GradientRow kIndexed[] = {
    {ops::kGather,
     [](GradientBuilder& g) {
       const Term x = g.arg(0);
       if (g.wants(0)) g.add(0, add_at(x.dims(), axis_attr(g, "axis", x.rank()), g.arg(1), g.cotangent()));
       return g.status();
     }},
    {ops::kGatherElements,
     [](GradientBuilder& g) {
       if (!g.wants(0)) return g.status();
       g.add(0, g.apply(ops::kScatterElements, {zeros_like(g.arg(0)), g.arg(1), g.cotangent()},
                        {{"axis", int_attr(g, "axis")}, {"reduction", std::string("add")}}));
       return g.status();
     }},
    {ops::kGatherNd, gather_nd},
    {ops::kScatterElements, scatter, "equal maxima or minima share it evenly"},
    {ops::kScatterNd, scatter, "equal maxima or minima share it evenly"},
};

}  // namespace

std::span<const GradientRow> index_gradients() { return kIndexed; }

}  // namespace tenon::compiler::gradients
