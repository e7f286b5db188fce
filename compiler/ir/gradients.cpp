#include "compiler/ir/gradients.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace tenon::compiler {
namespace {

struct GradientRow {
  OperatorId op;
  GradientRule rule;
};

// Each row reads as the chain rule: the result's adjoint dy times the derivative by an argument.
constexpr GradientRow kGradients[] = {
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
    {ops::kDense,  // y = x w^T
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, einsum("nm,mk->nk", g.cotangent(), g.arg(1)));
       if (g.wants(1)) g.add(1, einsum("nm,nk->mk", g.cotangent(), g.arg(0)));
       return g.status();
     }},
    {ops::kMultiply,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent() * g.arg(1));
       if (g.wants(1)) g.add(1, g.cotangent() * g.arg(0));
       return g.status();
     }},
    {ops::kSum,
     [](GradientBuilder& g) {
       const Dims dims = g.arg(0).dims();
       Dims kept = dims;
       const std::vector<int64_t> axes = ints_attr(g.attrs(), "axes");
       for (size_t i = 0; i < dims.size(); ++i) {
         const int64_t axis = static_cast<int64_t>(i), rank = static_cast<int64_t>(dims.size());
         if (axes.empty() || std::ranges::find(axes, axis) != axes.end() ||
             std::ranges::find(axes, axis - rank) != axes.end())
           kept[i] = g.builder().context().dim(1);
       }
       auto [attrs, computed] = sizes_attribute("shape", dims);
       g.add(0, g.apply(ops::kBroadcastTo, {g.cotangent().reshape_to(kept)}, std::move(attrs), std::move(computed)));
       return g.status();
     }},
    {ops::kTanh,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent() * (1 - g.result() * g.result()));
       return g.status();
     }},
};

}  // namespace

GradientBuilder::GradientBuilder(Builder& builder, const Apply& apply, Atom result,
                                 std::vector<std::optional<Atom>> cotangents, std::vector<bool> wanted)
    : Formula(builder),
      apply_(apply),
      result_(result),
      cotangents_(std::move(cotangents)),
      wanted_(std::move(wanted)),
      adjoints_(apply.args.size()) {
  assert(wanted_.size() == apply.args.size());
  assert(std::ranges::any_of(cotangents_, [](const auto& cotangent) { return cotangent.has_value(); }));
}

Term GradientBuilder::cotangent() {
  assert(cotangents_.size() == 1);
  return {*this, *cotangents_[0]};
}

std::optional<Term> GradientBuilder::cotangent(size_t k) {
  if (!cotangents_[k]) return std::nullopt;
  return Term(*this, *cotangents_[k]);
}

void GradientBuilder::add(size_t i, const Term& term) {
  assert(wanted_[i]);
  const Term sum = term.sum_to(arg(i).dims());
  adjoints_[i] = adjoints_[i] ? *adjoints_[i] + sum : sum;
}

GradientRule find_gradient(OperatorId op) {
  const auto* row = std::ranges::find(kGradients, op, &GradientRow::op);
  return row == std::end(kGradients) ? nullptr : row->rule;
}

}  // namespace tenon::compiler
