// The names by which users know a function's results.
#pragma once

#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// By variable: whether it is a result of the function, or a field of the tuple that it ends in, and has a name. A
// number is none.
std::vector<bool> named_results(const Context& context, const Function& function);

}  // namespace tenon::compiler
