// The unification of types by structure, and of dims by solving linear equations for the unknowns.
#include "compiler/ir/solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace tenon::compiler {

Dim Solver::fresh_dim() { return context_.dim(context_.symbol(fmt::format("?{}", dims_++))); }

Dim Solver::resolve(Dim dim) {
  if (dims_ == 0) return dim;
  // A solution may have unknowns that were solved after it.
  while (true) {
    const Dim next = context_.substitute(dim, dim_solutions_);
    if (next == dim) return dim;
    dim = next;
  }
}

Type Solver::resolve(Type type) {
  if (!type || !type.node->unknowns) return type;
  return context_.map_type(
      type,
      [&](Type leaf) {
        const UnknownType* unknown = leaf.unknown();
        auto found = unknown ? type_solutions_.find(unknown->id) : type_solutions_.end();
        return found == type_solutions_.end() ? leaf : resolve(found->second);
      },
      [&](Dim dim) { return resolve(dim); });
}

bool Solver::is_resolved(Dim dim) const {
  if (dims_ == 0) return true;
  bool resolved = true;
  for_each_variable(dim, [&](Symbol variable) { resolved &= !is_unknown(variable); });
  return resolved;
}

bool Solver::is_resolved(Type type) const { return !type.node->unknowns; }

bool Solver::unify(const std::vector<Type>& a, const std::vector<Type>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!unify(a[i], b[i])) return false;
  }
  return true;
}

Type Solver::follow(Type type) const {
  while (const UnknownType* unknown = type.unknown()) {
    auto found = type_solutions_.find(unknown->id);
    if (found == type_solutions_.end()) break;
    type = found->second;
  }
  return type;
}

bool Solver::pass(Type wanted, Type found) {
  wanted = follow(wanted), found = follow(found);
  const TensorType *a = wanted.tensor(), *b = found.tensor();
  if (a && b) {
    if (a->dtype != b->dtype || a->dims.size() != b->dims.size()) return false;
    for (size_t i = 0; i < a->dims.size(); ++i) {
      if (!a->dims[i].erased() && !b->dims[i].erased() && !equate(a->dims[i], b->dims[i], false)) return false;
    }
    return true;
  }
  const TupleType *x = wanted.tuple(), *y = found.tuple();
  if (!x || !y) return unify(wanted, found);
  if (wanted == found || passed_.contains({wanted, found})) return true;
  if (!std::ranges::equal(x->fields, y->fields, [&](Type p, Type q) { return pass(p, q); })) return false;
  passed_.insert({wanted, found});
  return true;
}

bool Solver::unify(Type a, Type b) {
  if (a == b) return true;
  a = follow(a), b = follow(b);
  if (a == b) return true;
  if (const UnknownType* unknown = a.unknown()) return solve(unknown->id, b);
  if (const UnknownType* unknown = b.unknown()) return solve(unknown->id, a);
  if (a.node->index() != b.node->index()) return false;
  if (unified_.contains({a, b})) return true;
  context_.visit();
  struct Visitor {
    Solver& self;
    Type b;
    bool operator()(const TensorType& x) const {
      const TensorType& y = *b.tensor();
      if (x.dtype != y.dtype || x.dims.size() != y.dims.size()) return false;
      for (size_t i = 0; i < x.dims.size(); ++i) {
        if (!self.equate(x.dims[i], y.dims[i], true)) return false;
      }
      return true;
    }
    bool operator()(const TupleType& x) const { return self.unify(x.fields, b.tuple()->fields); }
    bool operator()(const FunctionType& x) const {
      return self.unify(x.params, b.function()->params) && self.unify(x.result, b.function()->result);
    }
    bool operator()(const AdtType& x) const { return x.name == b.adt()->name && self.unify(x.args, b.adt()->args); }
    bool operator()(const ReferenceType& x) const { return self.unify(x.value, b.reference()->value); }
    bool operator()(const TypeVariable&) const { return false; }
    bool operator()(const UnknownType&) const { return false; }
  };
  if (!std::visit(Visitor{*this, b}, a.node->alternatives())) return false;
  unified_.insert({a, b});
  return true;
}

bool Solver::occurs(uint32_t unknown, Type type) {
  bool found = false;
  if (!type.node->unknowns) return false;
  context_.map_type(
      type,
      [&](Type leaf) {
        found |= leaf.unknown() && leaf.unknown()->id == unknown;
        return leaf;
      },
      [](Dim dim) { return dim; });
  return found;
}

bool Solver::solve(uint32_t unknown, Type type) {
  const Type resolved = resolve(type);
  if (occurs(unknown, resolved)) return false;
  type_solutions_.emplace(unknown, resolved);
  return true;
}

bool Solver::equate(Dim a, Dim b, bool strict) {
  if (a == b) return true;
  if (!a.valid() || !b.valid()) return false;
  const Dim difference = resolve(context_.subtract(a, b));
  switch (solve(difference)) {
    case Outcome::kHolds: return true;
    case Outcome::kPending: pending_.push_back({difference, strict}); return true;
    case Outcome::kFails: break;
  }
  const Answer answer = prover_.equal(difference, context_.dim(0));
  return answer == Answer::kYes || (!strict && answer == Answer::kUnknown);
}

Solver::Outcome Solver::solve(Dim difference) {
  if (difference.node->terms.empty()) return Outcome::kHolds;
  if (!difference.valid()) return Outcome::kFails;
  std::set<Symbol> unknowns;
  for_each_variable(difference, [&](Symbol variable) {
    if (is_unknown(variable)) unknowns.insert(variable);
  });
  for (Symbol unknown : unknowns) {
    const auto linear = context_.linear_in(unknown, difference);  // factor*unknown + offset = 0
    if (!linear) continue;
    const auto value = context_.divide(linear->second, context_.multiply(context_.dim(-1), linear->first));
    if (!value) continue;
    dim_solutions_.emplace(unknown, *value);
    return Outcome::kHolds;
  }
  return unknowns.empty() ? Outcome::kFails : Outcome::kPending;
}

bool Solver::retry() {
  bool progress = true;
  while (progress) {
    progress = false;
    std::vector<Equation> equations = std::move(pending_);
    pending_.clear();
    for (const Equation& equation : equations) {
      const Dim difference = resolve(equation.difference);
      switch (solve(difference)) {
        case Outcome::kHolds: progress = true; break;
        case Outcome::kFails:
          if (equation.strict && prover_.equal(difference, context_.dim(0)) != Answer::kYes) return false;
          break;  // an equation that is not strict is checked by fit()
        case Outcome::kPending: pending_.push_back({difference, equation.strict}); break;
      }
    }
  }
  return true;
}

bool Solver::divide_pending() {
  bool progress = false;
  for (const Equation& equation : pending_) {
    const Dim difference = resolve(equation.difference);
    std::set<Symbol> unknowns;
    for_each_variable(difference, [&](Symbol variable) {
      if (is_unknown(variable)) unknowns.insert(variable);
    });
    if (equation.strict || unknowns.size() != 1) continue;
    const auto linear = context_.linear_in(*unknowns.begin(), difference);  // factor*unknown + offset = 0
    const auto factor = linear ? linear->first.constant() : std::nullopt;
    if (!factor || *factor == 0 || *factor == INT64_MIN) continue;
    const Dim negated = context_.multiply(context_.dim(*factor > 0 ? -1 : 1), linear->second);
    dim_solutions_.emplace(*unknowns.begin(), context_.floor_divide(negated, context_.dim(std::abs(*factor))));
    progress = true;
  }
  return progress;
}

Answer Solver::fit(Type wanted, Type found) {
  TypePairMap<Answer> answers;
  return fit(wanted, found, answers);
}

Answer Solver::fit(Type wanted, Type found, TypePairMap<Answer>& answers) {
  if (wanted == found) return Answer::kYes;
  const TensorType *a = wanted.tensor(), *b = found.tensor();
  const TupleType *x = wanted.tuple(), *y = found.tuple();
  Answer answer = Answer::kYes;
  if (a && b) {
    if (a->dtype != b->dtype || a->dims.size() != b->dims.size()) return Answer::kNo;
    for (size_t i = 0; i < a->dims.size(); ++i) {
      if (a->dims[i].erased()) continue;
      answer = std::min(answer, b->dims[i].erased() ? Answer::kUnknown : prover_.equal(a->dims[i], b->dims[i]));
    }
    return answer;
  }
  if (!x || !y) return unify(wanted, found) ? Answer::kYes : Answer::kNo;
  if (x->fields.size() != y->fields.size()) return Answer::kNo;
  const auto known = answers.find({wanted, found});
  if (known != answers.end()) return known->second;
  context_.visit();
  for (size_t i = 0; i < x->fields.size(); ++i) answer = std::min(answer, fit(x->fields[i], y->fields[i], answers));
  answers.emplace(std::pair{wanted, found}, answer);
  return answer;
}

}  // namespace tenon::compiler
