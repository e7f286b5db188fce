// The user-visible names of a function's results.
#pragma once

#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// By variable: whether the variable is the result of the function, or a field of the result's tuple, and has a name. A
// name that consists of digits does not count.
std::vector<bool> named_results(const Context& context, const Function& function);

}  // namespace tenon::compiler
