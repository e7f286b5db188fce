// Unification of types and of the dims in them.
//
// Semantics: an equation of two types is split into equations of dims. `a = b` on dims: where a - b is zero, it holds;
// where an unknown dim appears in it once and alone, with a coefficient that divides the rest, the unknown is solved;
// where another unknown is left, the equation waits; else it does not hold, or cannot be proved. A failed unification
// leaves the solver as far as it came: it is for an error message then.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/context.h"

namespace tenon::compiler {

class Solver {
 public:
  explicit Solver(Context& context) : context_(context) {}

  Type fresh_type() { return context_.unknown(types_++); }
  Dim fresh_dim();

  // Makes both equal; false where that cannot be.
  bool unify(Type a, Type b);

  // With all that is known by now.
  Type resolve(Type type);
  Dim resolve(Dim dim);
  // Whether a resolved type or dim has no unknown.
  bool known(Type type) const;
  bool known(Dim dim) const;

  // The equations that still wait, tried again; false where one of them does not hold. `open` says how many are left.
  bool retry();
  size_t open() const { return waiting_.size(); }

 private:
  enum class Outcome : uint8_t { kHolds, kWaits, kFails };

  bool unify(const std::vector<Type>& a, const std::vector<Type>& b);
  bool solve(uint32_t unknown, Type type);
  bool occurs(uint32_t unknown, Type type) const;
  bool equate(Dim a, Dim b);
  Outcome solve(Dim difference);
  bool is_unknown(Symbol variable) const { return context_.name(variable).starts_with('?'); }

  Context& context_;
  uint32_t types_ = 0, dims_ = 0;
  std::unordered_map<uint32_t, Type> type_solutions_;
  std::map<Symbol, Dim> dim_solutions_;
  std::vector<Dim> waiting_;  // each is to be zero
};

}  // namespace tenon::compiler
