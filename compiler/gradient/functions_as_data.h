// Defunctionalization: closures as values of defined types. (Reynolds, "Definitional interpreters for higher-order
// programming languages", 1972.)
#pragma once

#include "compiler/gradient/reverse.h"

namespace tenon::compiler::gradient {

// Removes the closures of a module: the type of a function, without its sizes, becomes a type with one constructor for
// each closure of that type, whose field has what the closure captures; a call of a closure becomes a call of a
// generated function, which branches on the constructor. So what a closure captures has a derivative as any field has.
// A pullback is a closure, too, which captures the tape of its forward pass. The module must have no functions with
// type variables (specialize.h). An error where the entry function or a library has a closure as argument or result.
Status functions_as_data(Context& context, Module& module, PassesOfCallees& passes);

// Whether the function has closures, or values whose types have them as parts.
bool uses_closures(const Function& function);

}  // namespace tenon::compiler::gradient
