// The rewriting of a function binding by binding, on which most passes are built.
#pragma once

#include <functional>

#include "compiler/ir/builder.h"

namespace tenon::compiler {

// Receives each binding, in order, with operands of the new function (`binding.var` is still the old variable, so that
// side tables can be read). A returned atom replaces the binding; std::nullopt keeps the binding, which the step may
// have changed. The step adds new bindings with the Builder, whose span is the binding's; they precede the binding in
// its block. Nested blocks are rewritten before their binding is visited; a Lambda must stay a Lambda of the same type,
// since its body may refer to it.
using RewriteStep = std::function<Expected<std::optional<Atom>>(Builder&, Binding&)>;

// The function after `step`, renumbered, with types inferred anew from the types of the parameters. Side tables that
// are indexed by variables of the old function are invalid for the new one.
Expected<Function> rewrite(Context& context, Module& module, const Function& function, const RewriteStep& step);

// Rewrites every function of the module.
Expected<Module> rewrite(Context& context, Module module, const RewriteStep& step);

// The constant of an atom; nullptr where the atom is not a constant.
const runtime::Tensor* constant_of(const Module& module, const Atom& atom);

}  // namespace tenon::compiler
