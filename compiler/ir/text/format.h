// The formatter of the text form.
//
// Semantics: the formatter changes spaces, line ends and commas after the last of several items only, so it never
// changes the meaning of a text. Comments stay with the item that they precede or follow; several blank lines become
// one. format(format(x)) equals format(x). The text need not be a valid module, but its brackets must match.
#pragma once

#include <string>
#include <string_view>

#include "support/diagnostic.h"

namespace tenon::compiler {

Expected<std::string> format(std::string_view text, std::string_view file = "text");

}  // namespace tenon::compiler
