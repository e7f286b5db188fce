// Weights as parameters: a model's constants become arguments, so that training can change them.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// A constant that became a parameter.
struct LiftedParameter {
  std::string name;  // "conv1.weight": of the result of the operator or call, or else of this, and of the argument
  ConstId constant;  // of the module
};

// Makes each constant of floats with at least one axis that the function `entry` reads, also in branches and closures,
// a parameter in front of the others, in the order of their first use. Constants of other functions and scalars stay as
// they are, and so do those that `frozen` names. Names are unique in the function. An error where no constant is left,
// or where a name of `frozen` is none of a constant.
Expected<std::vector<LiftedParameter>> lift_parameters(Context& context, Module& module, Symbol entry,
                                                       const std::vector<std::string>& frozen = {});

}  // namespace tenon::compiler
