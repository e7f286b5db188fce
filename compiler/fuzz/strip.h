// Edits of printed text.
#pragma once

#include <string>
#include <string_view>

namespace tenon::compiler::fuzz {

// The text of a module without the types of bindings and, where `lambdas`, of closures' parameters and results.
std::string without_annotations(std::string_view text, bool lambdas);

}  // namespace tenon::compiler::fuzz
