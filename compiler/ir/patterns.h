// The exhaustiveness check of the patterns of a match.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// A value that no arm matches, as "Cons(_, Nil)"; std::nullopt where the arms match every value. (Maranget, "Warnings
// for pattern matching", algorithm I.) The search is bounded, and exceeding the bound is an error. The constructors of
// the patterns must exist and have as many fields as the patterns.
Expected<std::optional<std::string>> uncovered(const Context& context, const Module& module, std::span<const Arm> arms);

}  // namespace tenon::compiler
