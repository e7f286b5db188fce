// Automatic differentiation: the expansion of `gradient` and `pullback` into functions of the language.
#pragma once

#include "compiler/ir/module.h"

namespace tenon::compiler {

// The module without derivatives of calls: each becomes a call of a generated function, which has the forward code of
// the callee and the code of its adjoints. Code in a straight line stays so. Calls, branches and recursion keep what
// they need on tapes, values of generated data types, so no generated code has a reference or a closure, except that a
// pullback is one; and derivatives of derivatives need nothing else. An error names every operator without a rule
// through which a derivative would have to pass.
Expected<Module> differentiate(Context& context, Module module);

}  // namespace tenon::compiler
