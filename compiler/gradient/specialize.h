// Specialization: copies of polymorphic functions for the types that they are called with.
#pragma once

#include "compiler/ir/module.h"

namespace tenon::compiler::gradient {

// The module without functions that have type variables: each call of one is of a copy for its types. An error where a
// function calls itself with ever larger types. (As monomorphization in MLton.)
Expected<Module> specialize(Context& context, Module module);

}  // namespace tenon::compiler::gradient
