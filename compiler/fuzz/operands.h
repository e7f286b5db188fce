// Arguments and attributes for an operator, from its record: guessed, and checked by its type rule. Operators with
// sample arguments (Operator::samples) have a maker.
#pragma once

#include <optional>

#include "compiler/fuzz/body.h"
#include "compiler/ir/operator.h"

namespace tenon::compiler::fuzz {

struct Proposal {
  Atoms args;
  Attrs attrs;  // complete
};

// Nothing where every guess failed, or no local in scope suits the operator.
std::optional<Proposal> propose(Body& body, const Operator& op);

}  // namespace tenon::compiler::fuzz
