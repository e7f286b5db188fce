// Whether the patterns of a match take every value.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// A value that none of the arms takes, as "Cons(_, Nil)"; nothing where they take all. (Maranget, "Warnings for pattern
// matching", algorithm I.) The search is bounded: an error where it takes too long. The constructors exist and have as
// many fields as the patterns say.
Expected<std::optional<std::string>> uncovered(const Context& context, const Module& module, std::span<const Arm> arms);

}  // namespace tenon::compiler
