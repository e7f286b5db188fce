// Gradients of operators that are composed of simpler ones: the rule states the formula of the result, and is its
// derivative by the rules of the operators in it.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler::gradients {

class OperatorFormula {
 public:
  // Appends a copy of each argument, of which the formula is a function.
  explicit OperatorFormula(GradientBuilder& g);

  const Term& arg(size_t i) const { return args_[i]; }

  // Adds the adjoints of the arguments to the rule. `results`: the formula of the result, or of each field of a tuple;
  // nothing for one that is constant.
  Status differentiate(const std::vector<std::optional<Term>>& results) const;

 private:
  GradientBuilder& g_;
  std::vector<Term> args_;
};

}  // namespace tenon::compiler::gradients
