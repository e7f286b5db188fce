// The verifier of the IR's invariants. Passes rely on the invariants and do not check them again.
#pragma once

#include "compiler/ir/module.h"

namespace tenon::compiler {

// Each variable is bound once, before its uses and in an enclosing block; every type is well formed, its variables are
// in scope, and it is the type that the typing rules infer; matches are exhaustive; constants, constructors and
// functions exist; the result has the declared type. A violation is a bug of the pass that produced the module
// (Fault::kInternal).
Status verify(Context& context, const Module& module);

// A violation in a function or a type definition and its location. The parser reports it as an error of its input.
struct Finding {
  SpanId span{};
  std::string what, help;
};
std::optional<Finding> check(Context& context, const Module& module, const Function& function);
// Of the functions that its annotations name, whose results are inferred.
std::optional<Finding> check_annotations(Context& context, const Module& module, const Function& function);
std::optional<Finding> check(Context& context, const Module& module, Symbol name, const Adt& adt);
std::optional<Finding> check(Context& context, const Module& module, const Library& library);
std::optional<Finding> check(Context& context, const Module& module, Symbol name, const loop::Function& function);

}  // namespace tenon::compiler
