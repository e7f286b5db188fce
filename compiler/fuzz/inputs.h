// Random arguments for a function of a random module.
#pragma once

#include <vector>

#include "compiler/ir/interpreter.h"
#include "support/random.h"

namespace tenon::compiler::fuzz {

// A value for each parameter, dims 1 to 4 and now and then 0; an error where a parameter can have none, as a function.
Expected<std::vector<RunValue>> random_inputs(Context& context, const Module& module, const Function& function,
                                              Random& random);

}  // namespace tenon::compiler::fuzz
