// One step of training as a function of the language: the loss of a batch, its gradient, and new weights.
#pragma once

#include <string>
#include <vector>

#include "compiler/train/lift.h"
#include "compiler/train/optimizers.h"

namespace tenon::compiler {

struct StepOptions {
  std::string loss = "cross_entropy";  // of the model's first result; or "mse"
  std::string optimizer = "adam";      // or a file (make_optimizer)
  OptimizerOptions numbers = {};
  double clip = 0;  // largest norm of all gradients together; 0: any
  // Parts that the samples of a step are computed in, one after the other: the loss and the gradients are the means of
  // those of the parts. The model's batch is one part.
  int64_t parts = 1;
};

// Makes @main of the module the step, and the former @main, whose first parameters are the weights (lift_parameters),
// @model. Labels of cross_entropy are classes [N] of i64 for scores [N, C], those of mse are of the result's type.
// An error where the first result does not fit the loss, or where a parameter that is no weight is no tensor.
// Parameters have the names of runtime/train/names.h.
Status make_training_step(Context& context, Module& module, const std::vector<LiftedParameter>& weights,
                          const StepOptions& options);

}  // namespace tenon::compiler
