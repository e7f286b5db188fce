// Arguments for operators whose type rules no guess meets, or whose kernels want more of values than their types say.
#pragma once

#include "compiler/fuzz/operands.h"

namespace tenon::compiler::fuzz {

using Maker = std::optional<Proposal> (*)(Body& body, const Operator& op);

// nullptr where guesses will do.
Maker find_maker(const Operator& op);

}  // namespace tenon::compiler::fuzz
