// Checks that a module keeps what the IR promises; passes rely on it and do not check again.
#pragma once

#include "compiler/ir/module.h"

namespace tenon::compiler {

// Each variable is bound once, before its use and around it; every type is well formed, its variables in scope, and the
// one that the typing rules give; matches are complete; constants, constructors and functions exist; the result has the
// declared type. A finding is a bug of the pass that made the module, and the Diagnostic says so (Fault::kInternal).
Status verify(Context& context, const Module& module);

// What is wrong with a function or a type definition, and where; for readers of text, to whom it is the input's fault.
struct Finding {
  SpanId span{};
  std::string what, help;
};
std::optional<Finding> check(Context& context, const Module& module, const Function& function);
std::optional<Finding> check(Context& context, const Module& module, Symbol name, const Adt& adt);
std::optional<Finding> check(Context& context, const Module& module, const Library& library);
std::optional<Finding> check(Context& context, const Module& module, Symbol name, const loop::Function& function);

}  // namespace tenon::compiler
