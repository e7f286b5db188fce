// Unification of types and of the dims in them.
//
// Semantics: an equation of two types is split into equations of dims. `a = b` on dims: where a - b is zero or the
// prover says so, it holds; where an unknown dim appears in it linearly, with a coefficient that divides the rest, the
// unknown is solved; where another unknown is left, the equation waits; else it does not hold. unify() is for types
// that must be equal. pass() is for values that are handed over: `?` takes any size, and an equation over known
// variables that cannot be decided stays open, for a check at run time (fit()). A failed unification leaves the solver
// as far as it came: it is for an error message then.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/base/dim_prover.h"
#include "compiler/ir/context.h"

namespace tenon::compiler {

class Solver {
 public:
  // `bounds`: of the variables that are in scope.
  explicit Solver(Context& context, DimBounds bounds = {}) : context_(context), prover_(context, std::move(bounds)) {}

  Type fresh_type() { return context_.unknown(types_++); }
  Dim fresh_dim();

  // Makes both equal; false where that cannot be.
  bool unify(Type a, Type b);
  // Makes `found` fit where `wanted` is; false where it never does.
  bool pass(Type wanted, Type found);

  // Whether a value of type `found` fits where `wanted` is, both without unknowns: kUnknown where a check of its sizes
  // at run time can say.
  Answer fit(Type wanted, Type found);

  // With all that is known by now.
  Type resolve(Type type);
  Dim resolve(Dim dim);
  // Whether a resolved type or dim has no unknown.
  bool known(Type type) const;
  bool known(Dim dim) const;

  // The equations that still wait, tried again; false where one of them, of unify(), does not hold. `open` says how
  // many are left.
  bool retry();
  size_t open() const { return waiting_.size(); }
  // How many unknowns have been found.
  size_t solved() const { return type_solutions_.size() + dim_solutions_.size(); }

  const DimProver& prover() const { return prover_; }

 private:
  enum class Outcome : uint8_t { kHolds, kWaits, kFails };
  struct Equation {
    Dim difference;  // is to be zero
    bool strict;
  };

  bool unify(const std::vector<Type>& a, const std::vector<Type>& b);
  bool solve(uint32_t unknown, Type type);
  bool occurs(uint32_t unknown, Type type) const;
  bool equate(Dim a, Dim b, bool strict);
  Type follow(Type type) const;
  Outcome solve(Dim difference);
  bool is_unknown(Symbol variable) const { return context_.name(variable).starts_with('?'); }

  Context& context_;
  DimProver prover_;
  uint32_t types_ = 0, dims_ = 0;
  std::unordered_map<uint32_t, Type> type_solutions_;
  std::map<Symbol, Dim> dim_solutions_;
  std::vector<Equation> waiting_;
};

}  // namespace tenon::compiler
