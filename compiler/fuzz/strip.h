// Edits of printed text.
#pragma once

#include <string>
#include <string_view>

#include "support/random.h"

namespace tenon::compiler::fuzz {

// The text of a module without the types of bindings and, where `lambdas`, of closures' parameters and results.
std::string without_annotations(std::string_view text, bool lambdas);

// The text of the same module in which variables take the names of others that are no longer used, as in
// "let %x = %x + 1f32;". Names of the printer are unique in a function.
std::string with_shadowing(std::string_view text, Random& random);

}  // namespace tenon::compiler::fuzz
