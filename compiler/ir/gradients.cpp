#include "compiler/ir/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>

#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler {

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
  return *cotangent(0);
}

std::optional<Term> GradientBuilder::cotangent(size_t k) {
  if (!cotangents_[k]) return std::nullopt;
  const Term value = named(Term(*this, *cotangents_[k]));
  cotangents_[k] = value.atom();
  return value;
}

Term GradientBuilder::result() {
  if (ok() && builder().tensor_type(result_)) result_ = named(Term(*this, result_)).atom();
  return {*this, result_};
}

Term GradientBuilder::result(uint32_t k) { return named(field({*this, result_}, k)); }

// A name that no size in the function has.
Symbol GradientBuilder::fresh_dim() const {
  std::set<Symbol> used(builder().function().dims.begin(), builder().function().dims.end());
  for (const VarInfo& info : builder().function().vars) {
    if (!info.type || !info.type.node->variables) continue;
    for_each_part(info.type, [&](Type part) {
      if (!part.tensor()) return;
      for (const Dim dim : part.tensor()->dims) for_each_variable(dim, [&](Symbol name) { used.insert(name); });
    });
  }
  for (size_t i = 0;; ++i) {
    const Symbol name = builder().context().symbol(fmt::format("g{}", i));
    if (!used.contains(name)) return name;
  }
}

Term GradientBuilder::named(const Term& term) {
  const Dims dims = term.dims();
  if (std::ranges::none_of(dims, &Dim::erased)) return term;
  Cast cast{term.atom(), {}, {}};
  Dims opened;
  for (const Dim dim : dims) {
    opened.push_back(dim);
    if (!dim.erased()) continue;
    cast.fresh.push_back(fresh_dim());
    while (std::ranges::count(cast.fresh, cast.fresh.back()) > 1)
      cast.fresh.back() = builder().context().symbol(std::string(builder().context().name(cast.fresh.back())) + "_");
    opened.back() = builder().context().dim(cast.fresh.back());
  }
  cast.type = builder().context().tensor(std::move(opened), term.dtype());
  return this->term(builder().bind(std::move(cast), Symbol{}));
}

void GradientBuilder::add(size_t i, const Term& term) {
  assert(wanted_[i]);
  const Term sum = term.sum_to(arg(i).dims());
  adjoints_[i] = adjoints_[i] ? *adjoints_[i] + sum : sum;
}

const GradientRow* find_gradient(OperatorId op) {
  for (const std::span<const GradientRow> family : gradients::gradient_families()) {
    if (const auto row = std::ranges::find(family, op, &GradientRow::op); row != family.end()) return &*row;
  }
  return nullptr;
}

}  // namespace tenon::compiler
