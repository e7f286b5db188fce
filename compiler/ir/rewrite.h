// Rewriting a function binding by binding: the workhorse of passes.
#pragma once

#include <functional>

#include "compiler/ir/builder.h"

namespace tenon::compiler {

// Is shown each binding, in order, with its operands already those of the new function (`binding.var` is still the old
// one, so that side tables can be asked). An atom takes the binding's place; nullopt keeps the binding, which the step
// may have changed. New bindings are made with the Builder, whose span is the binding's, and go in front of the
// binding, in its block. Blocks inside a binding are rewritten before it is shown; a Lambda must stay a Lambda of the
// same type, since its body may name it.
using Step = std::function<Expected<std::optional<Atom>>(Builder&, Binding&)>;

// The function after `step`, renumbered, its types inferred anew from the parameters'. Old side tables die with it.
Expected<Function> rewrite(Context& context, Module& module, const Function& function, const Step& step);

// Every function of the module.
Expected<Module> rewrite(Context& context, Module module, const Step& step);

// The constant behind an atom; nullptr where it is none.
const runtime::Tensor* constant_of(const Module& module, const Atom& atom);

}  // namespace tenon::compiler
