// The unification of types and of their dims.
//
// Semantics: an equation of two types is split into equations of dims. The equation `a = b` of dims holds where a - b
// is zero or the prover proves it; where an unknown dim appears in it linearly, with a coefficient that divides the
// other terms, the unknown is solved; where another unknown remains, the equation is pending; otherwise it fails.
// unify() is for types that must be equal. pass() is for values that are passed: `?` accepts any size, and an equation
// without unknowns that the prover can neither prove nor refute is left to a check at run time (fit()). A failed
// unification leaves the solver in its intermediate state, which serves the error message only.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/base/dim_prover.h"
#include "compiler/ir/context.h"

namespace tenon::compiler {

class Solver {
 public:
  // `bounds`: the bounds of the variables in scope.
  explicit Solver(Context& context, DimBounds bounds = {}) : context_(context), prover_(context, std::move(bounds)) {}

  Type fresh_type() { return context_.unknown(types_++); }
  Dim fresh_dim();

  // Makes both types equal; returns false where this is impossible.
  bool unify(Type a, Type b);
  // Makes a value of type `found` fit the type `wanted`; returns false where it never fits.
  bool pass(Type wanted, Type found);

  // Whether a value of type `found` fits the type `wanted`, both without unknowns; kUnknown where only a check of its
  // sizes at run time can tell.
  Answer fit(Type wanted, Type found);

  // The type or dim with all unknowns replaced that are solved so far.
  Type resolve(Type type);
  Dim resolve(Dim dim);
  // Whether a type or dim returned by resolve() has no unknown.
  bool is_resolved(Type type) const;
  bool is_resolved(Dim dim) const;

  // Tries the pending equations again; returns false where an equation of unify() fails.
  bool retry();
  // Solves pending equations of pass() that are linear in one unknown, by a division: 2*k = m by k = m // 2. Whether m
  // is even remains to be checked, which fit() does. Returns whether an unknown was solved.
  bool divide_pending();
  // The number of pending equations.
  size_t pending() const { return pending_.size(); }
  // The number of solved unknowns.
  size_t solved() const { return type_solutions_.size() + dim_solutions_.size(); }

  const DimProver& prover() const { return prover_; }

 private:
  enum class Outcome : uint8_t { kHolds, kPending, kFails };
  struct Equation {
    Dim difference;  // must be zero
    bool strict;
  };

  bool unify(const std::vector<Type>& a, const std::vector<Type>& b);
  bool solve(uint32_t unknown, Type type);
  bool occurs(uint32_t unknown, Type type);
  Answer fit(Type wanted, Type found, TypePairMap<Answer>& answers);
  bool equate(Dim a, Dim b, bool strict);
  Type follow(Type type) const;
  Outcome solve(Dim difference);
  bool is_unknown(Symbol variable) const { return context_.name(variable).starts_with('?'); }

  Context& context_;
  DimProver prover_;
  uint32_t types_ = 0, dims_ = 0;
  std::unordered_map<uint32_t, Type> type_solutions_;
  std::map<Symbol, Dim> dim_solutions_;
  std::vector<Equation> pending_;
  TypePairs unified_, passed_;  // the equations of these hold or are pending
};

}  // namespace tenon::compiler
