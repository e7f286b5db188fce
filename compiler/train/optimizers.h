// Optimizers: how weights change with their gradients, as formulas of the language.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/term.h"

namespace tenon::compiler {

// The numbers of an optimizer; the learning rate is an argument of each step.
struct OptimizerOptions {
  double momentum = 0.9;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double decay = 0;  // of weights: added to gradients as decay * w, or subtracted from weights by adamw
};

// One weight in a step: w' and the tensors of its state, each of the shape of w. `step` counts from 1 and is a scalar
// of the dtype of w.
struct WeightUpdate {
  Term weight;
  std::vector<Term> state;
};

// How weights are updated, in the step that it is made for.
struct Optimizer {
  std::vector<std::string> state;  // names of the tensors that it keeps for each weight, zero at first
  std::function<WeightUpdate(const Term& weight, const Term& gradient, const std::vector<Term>& state, const Term& rate,
                             const Term& step)>
      update;
};

struct OptimizerRecord {
  std::string_view name, doc;
  std::vector<std::string_view> state;
  WeightUpdate (*update)(const OptimizerOptions& options, const Term& weight, const Term& gradient,
                         const std::vector<Term>& state, const Term& rate, const Term& step);
};

// sgd, momentum, nesterov, adam, adamw, rmsprop.
const std::vector<OptimizerRecord>& optimizers();

// The optimizer of this name, or of a file .tn whose function
//   @update[n](%w: Tensor[(n,), f32], %g: Tensor[(n,), f32], %a: Tensor[(n,), f32], ..., %rate: Tensor[(), f32],
//              %step: Tensor[(), f32]) -> (Tensor[(n,), f32], Tensor[(n,), f32], ...)
// gets the elements of a weight, its gradient and the tensors of its state, which the parameters between name, and
// returns the new ones: it works element by element, or on sums over a weight. Its functions become part of `module`.
// An error where no optimizer has the name, or the function has another type.
Expected<Optimizer> make_optimizer(Context& context, Module& module, const std::string& name,
                                   const OptimizerOptions& options);

// The gradients scaled so that the square root of the sum of their squares is at most `norm`.
std::vector<Term> clipped(const std::vector<Term>& gradients, double norm);

}  // namespace tenon::compiler
