// The types of adjoints: D(T) is the type of the derivative of a scalar by a value of type T.
//
// D of a tensor of floats is its own type, and D of a tuple is the tuple of its fields' adjoints. D of a defined type
// with a part of floats, as List[A], is ListAdjoint[D(A)]: a type with the constructors of List, whose names have the
// same suffix, and one more, ListZero, for an adjoint of zero of any structure. D of an adjoint is the adjoint's own
// type. Every other type, as integers, closures and references, has the unit () as its adjoint.
#pragma once

#include "compiler/ir/module.h"

namespace tenon::compiler {

Type adjoint_type(Context& context, const Module& module, Type type);

// Whether the type has a part of floats, so that its adjoint has a value other than zero.
bool has_adjoint(Context& context, const Module& module, Type type);

// Declares the adjoint of a defined type and of the types of its fields, where the module has no declaration yet. An
// error where another type or constructor has one of the names.
Status declare_adjoint(Context& context, Module& module, Symbol adt);
// Declares the adjoints of all defined types.
Status declare_adjoints(Context& context, Module& module);

// The names in the adjoint of a defined type: of the type, of a constructor and of the zero.
Symbol adjoint_name(Context& context, Symbol name);
Symbol zero_name(Context& context, Symbol adt);

}  // namespace tenon::compiler
