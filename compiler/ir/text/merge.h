// The import of one module's definitions into another.
#pragma once

#include <string>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// Adds the types and globals of `from` to `to`, with their constants and spans. A definition that `to` has already
// stays, where both are equal; otherwise its name is returned, and `to` is incomplete.
std::string merge(const Context& context, Module& to, const Module& from);

}  // namespace tenon::compiler
