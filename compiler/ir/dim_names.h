// The names of unknown sizes: a model's file may have any text, as "N.0", the text form has identifiers, as "N_0". Both
// are accepted wherever a user names a size.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/ir/context.h"
#include "compiler/ir/module.h"

namespace tenon::compiler {

// The name as an identifier of the text form; empty where it has neither letter nor digit, as "?".
std::string identifier(std::string_view name);

// The dim of the function that has this name, in the file's form or in the text form.
std::optional<Symbol> find_dim(Context& context, const Function& function, std::string_view name);

}  // namespace tenon::compiler
