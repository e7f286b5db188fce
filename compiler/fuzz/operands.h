// Arguments and attributes for an operator, from its record: guessed, and held against its type rule. Operators whose
// rules no guess meets have a maker of their own.
#pragma once

#include <optional>

#include "compiler/fuzz/body.h"
#include "compiler/ir/operator.h"

namespace tenon::compiler::fuzz {

struct Proposal {
  Atoms args;
  Attrs attrs;  // complete
};

// Nothing where no guess was right, or nothing is in scope that the operator takes.
std::optional<Proposal> propose(Body& body, const Operator& op);

// Whether a small change of float arguments changes the result little. The others get floats that no pass computes.
bool continuous(const Operator& op);

}  // namespace tenon::compiler::fuzz
