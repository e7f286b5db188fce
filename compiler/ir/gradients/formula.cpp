#include "compiler/ir/gradients/formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "support/try.h"

namespace tenon::compiler::gradients {
namespace {

bool has_floats(Type type) {
  if (const TensorType* tensor = type.tensor()) return runtime::kReals.contains(tensor->dtype);
  return type.tuple() && std::ranges::any_of(type.tuple()->fields, has_floats);
}

// The adjoints of a value: one, or one a field of a tuple.
using Adjoints = std::map<VarId, std::vector<std::optional<Term>>>;

void accumulate(Adjoints& adjoints, VarId var, size_t field, size_t fields, const Term& term) {
  auto& sums = adjoints[var];
  sums.resize(std::max(sums.size(), fields));
  sums[field] = sums[field] ? *sums[field] + term : term;
}

}  // namespace

OperatorFormula::OperatorFormula(GradientBuilder& g) : g_(g) {
  for (size_t i = 0; i < g.num_args(); ++i) args_.push_back(g.apply(ops::kIdentity, {g.arg(i)}));
}

Status OperatorFormula::differentiate(const std::vector<std::optional<Term>>& results) const {
  if (!g_.ok()) return g_.status();
  Builder& builder = g_.builder();
  Adjoints adjoints;
  std::set<VarId> active;
  VarId first{}, end = static_cast<VarId>(builder.function().vars.size());
  for (size_t i = 0; i < args_.size(); ++i) {
    const VarId var = std::get<VarId>(args_[i].atom());
    if (i == 0) first = var;
    if (g_.wants(i)) active.insert(var);
  }
  const auto is_active = [&](const Atom& atom) {
    const auto* var = std::get_if<VarId>(&atom);
    return var && active.contains(*var);
  };
  // All variables since the first argument's copy are those of the formula, in the order of their bindings.
  for (VarId var = first; var != end; var = static_cast<VarId>(index(var) + 1)) {
    const Value* value = builder.value_of(var);
    bool found = false;
    if (value) for_each_operand(*value, [&](const Atom& atom) { found |= is_active(atom); });
    if (found && has_floats(builder.function().type(var))) active.insert(var);
  }
  for (size_t k = 0; k < results.size(); ++k) {
    if (!results[k] || !is_active(results[k]->atom())) continue;
    if (const auto dy = g_.cotangent(k)) accumulate(adjoints, std::get<VarId>(results[k]->atom()), 0, 1, *dy);
  }
  for (size_t at = index(end); at-- > index(first);) {
    const auto var = static_cast<VarId>(at);
    const auto found = adjoints.find(var);
    if (found == adjoints.end()) continue;
    const std::vector<std::optional<Term>> sums = std::move(found->second);
    adjoints.erase(found);
    const auto own = std::ranges::find(args_, Atom(var), &Term::atom);
    if (own != args_.end()) {
      g_.add(static_cast<size_t>(own - args_.begin()), *sums[0]);
      continue;
    }
    const Value value = *builder.value_of(var);
    if (const auto* apply = std::get_if<Apply>(&value)) {
      if (!apply->op->gradient) {
        return error(fmt::format("the formula of {} has {}, which has no gradient", g_.op().name, apply->op->name), "",
                     "", Fault::kInternal);
      }
      std::vector<std::optional<Atom>> cotangents;
      for (const auto& sum : sums) cotangents.push_back(sum ? std::optional(sum->atom()) : std::nullopt);
      std::vector<bool> wanted;
      for (const Atom& arg : apply->args) wanted.push_back(is_active(arg));
      GradientBuilder rule(builder, *apply, var, std::move(cotangents), wanted);
      TENON_TRY(apply->op->gradient(rule));
      TENON_TRY(rule.status());
      for (size_t i = 0; i < apply->args.size(); ++i) {
        if (!rule.adjoint(i)) continue;
        accumulate(adjoints, std::get<VarId>(apply->args[i]), 0, 1, Term(g_, rule.adjoint(i)->atom()));
      }
    } else if (const auto* project = std::get_if<Project>(&value)) {
      const VarId tuple = std::get<VarId>(project->tuple);
      const size_t fields = builder.function().type(tuple).tuple()->fields.size();
      accumulate(adjoints, tuple, project->index, fields, *sums[0]);
    } else if (const auto* cast = std::get_if<Cast>(&value)) {
      accumulate(adjoints, std::get<VarId>(cast->value), 0, 1, *sums[0]);
    } else {
      return error(fmt::format("the formula of {} does not consist of operators alone", g_.op().name), "", "",
                   Fault::kInternal);
    }
  }
  return g_.status();
}

}  // namespace tenon::compiler::gradients
