// The passes, one a file; pass.cpp has their documentation.
#pragma once

#include "compiler/ir/rewrite.h"

namespace tenon::compiler {

Expected<Module> infer(Context& context, Module module);
Expected<Module> simplify(Context& context, Module module);
Expected<Module> fold_constants(Context& context, Module module);
Expected<Module> fold_scales(Context& context, Module module);
Expected<Module> fold_bias(Context& context, Module module);
Expected<Module> dead_code(Context& context, Module module);

// Binds dim variables of one function to sizes, as --shapes does, and infers its types anew.
Expected<Module> bind_shapes(Context& context, Module module, Symbol function,
                             const std::map<std::string, int64_t>& shapes);

// The operator application that binds `atom` in a function made by a Builder; nullptr where it is no variable, or is
// bound by something else.
const Apply* application(const Function& function, const Atom& atom);
// The same, of that operator only.
const Apply* application(const Function& function, const Atom& atom, std::string_view op);

}  // namespace tenon::compiler
