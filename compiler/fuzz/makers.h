// Arguments for operators whose records say more of them than their types (Operator::samples).
#pragma once

#include "compiler/fuzz/operands.h"

namespace tenon::compiler::fuzz {

using Maker = std::optional<Proposal> (*)(Body& body, const Operator& op);

// nullptr where guesses suffice.
Maker find_maker(const Operator& op);

}  // namespace tenon::compiler::fuzz
