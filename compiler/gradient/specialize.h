// Specialization: copies of polymorphic functions for the types that they are called with.
#pragma once

#include "compiler/ir/module.h"

namespace tenon::compiler::gradient {

// The module in which no function without type variables calls one with type variables: each call is of a copy for its
// types. The original functions stay where something may refer to them by name. An error where a function calls itself
// with ever larger types. (As monomorphization in MLton.)
Expected<Module> specialize(Context& context, Module module);

}  // namespace tenon::compiler::gradient
