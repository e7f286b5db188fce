#include "compiler/ir/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <functional>
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

// A name that no size in the function has, nor one of `others`.
Symbol GradientBuilder::fresh_dim(const std::vector<Symbol>& others) const {
  std::set<Symbol> used(builder().function().dims.begin(), builder().function().dims.end());
  used.insert(others.begin(), others.end());
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

Term GradientBuilder::renamed(const Term& term, const std::vector<bool>& sizes) {
  if (!ok() || std::ranges::none_of(sizes, std::identity())) return term;
  Cast cast{term.atom(), {}, {}};
  Dims dims = term.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!sizes[i]) continue;
    cast.fresh.push_back(fresh_dim(cast.fresh));
    dims[i] = builder().context().dim(cast.fresh.back());
  }
  cast.type = builder().context().tensor(std::move(dims), term.dtype());
  return this->term(builder().bind(std::move(cast), Symbol{}));
}

Term GradientBuilder::named(const Term& term) {
  std::vector<bool> sizes;
  for (const Dim dim : term.dims()) sizes.push_back(dim.erased());
  return renamed(term, sizes);
}

Term GradientBuilder::with_sizes(const Term& term) {
  const Dims dims = term.dims(), proved = proved_sizes(dims);
  std::vector<bool> sizes;
  for (size_t i = 0; i < dims.size(); ++i) sizes.push_back(dims[i].erased() || dims[i] != proved[i]);
  return renamed(term, sizes);
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
