// Defunctionalization: closures as values of defined types. (Reynolds, "Definitional interpreters for higher-order
// programming languages", 1972.)
#pragma once

#include "compiler/ir/module.h"

namespace tenon::compiler::gradient {

// The module without closures: the type of a function, without its sizes, becomes a type with one constructor for each
// closure of that type, whose field has what the closure captures; a call of a closure becomes a call of a generated
// function, which tells the constructors apart. So what a closure captures has a derivative as any field has. Functions
// with type variables stay as they are, which the others must not call any more (specialize.h). An error where the
// entry function or a library has a closure as argument or result.
Expected<Module> functions_as_data(Context& context, Module module);

// Whether the function has closures, or values whose types have them as parts.
bool uses_closures(const Function& function);

}  // namespace tenon::compiler::gradient
