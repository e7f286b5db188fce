// Gradient rules: how the adjoint of an operator's result becomes the adjoints of its arguments (reverse mode). The
// rules are rows of tables, a file a family of operators in compiler/ir/gradients, which also have the reason why an
// operator on floats has none. An operator without a row has no derivative: an argument or the result is never a float.
//
// A rule consists of operators that have rules themselves, so that gradients have gradients. Derivatives at kinks are
// those of PyTorch; the row's note says which.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/operator.h"
#include "compiler/ir/term.h"

namespace tenon::compiler {

// The application that a rule differentiates, and the adjoints that it makes. What a rule reads of the arguments and of
// the result is what a forward pass saves.
class GradientBuilder : public Formula {
 public:
  // Appends to the builder. `result` is the value of the application, and `cotangents` has the adjoint of each tensor
  // of it: one, or one a field where the result is a tuple. An absent adjoint is zero; at least one is present, and
  // those of fields that are not floats are absent. `wanted`: the arguments whose adjoints are computed. `apply` must
  // outlive the builder.
  GradientBuilder(Builder& builder, const Apply& apply, Atom result, std::vector<std::optional<Atom>> cotangents,
                  std::vector<bool> wanted);

  const Operator& op() const { return *apply_.op; }
  const Attrs& attrs() const { return apply_.attrs; }
  // Attributes whose values are dims or operands.
  const ComputedAttrs& computed() const { return apply_.computed; }
  size_t num_args() const { return apply_.args.size(); }
  Term arg(size_t i) { return {*this, apply_.args[i]}; }
  // The result and its adjoint, where it is one tensor.
  Term result();
  Term cotangent();
  // Field k of a tuple, and its adjoint: nothing where it is zero, for which no rule builds zeros.
  Term result(uint32_t k);
  std::optional<Term> cotangent(size_t k);
  bool wants(size_t i) const { return wanted_[i]; }

  // The operator itself, with its attributes, applied to other arguments.
  Term apply_to(const std::vector<Term>& args) { return apply(op().id, args, attrs(), computed()); }
  // The tensor with a name for each of its sizes that only the run tells (`?`), so that operators accept it.
  Term named(const Term& term);
  // The same with a name for each size that is not proved to be one, as n - 2.
  Term with_sizes(const Term& term);

  // Adds a term to the adjoint of argument i, which must be wanted. A term of the shape to which the argument was
  // broadcast is summed to the argument's shape.
  void add(size_t i, const Term& term);

  // The adjoint of argument i; nothing where it is zero or was not wanted.
  const std::optional<Term>& adjoint(size_t i) const { return adjoints_[i]; }

 private:
  Symbol fresh_dim(const std::vector<Symbol>& others) const;
  Term renamed(const Term& term, const std::vector<bool>& sizes);

  const Apply& apply_;
  Atom result_;
  std::vector<std::optional<Atom>> cotangents_;
  std::vector<bool> wanted_;
  std::vector<std::optional<Term>> adjoints_;
};

struct GradientRow {
  OperatorId op;
  GradientRule rule = nullptr;
  // Of a rule: its value where there is no derivative, as at a kink. Without a rule: why there is none.
  std::string_view note = {};
};

// The row of a built-in operator; nullptr where it has none.
const GradientRow* find_gradient(OperatorId op);

}  // namespace tenon::compiler
