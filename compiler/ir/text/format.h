// The one layout of the text form.
//
// Semantics: spaces and line ends change, and commas behind the last of several items; nothing else does, so the text
// means what it meant, whatever it says. Comments stay with what they stand before or behind; one blank line stays
// where there were some. format(format(x)) equals format(x). The text need not be a module that can be read: its
// brackets must match.
#pragma once

#include <string>
#include <string_view>

#include "support/diagnostic.h"

namespace tenon::compiler {

Expected<std::string> format(std::string_view text, std::string_view file = "text");

}  // namespace tenon::compiler
