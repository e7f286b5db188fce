// Proofs that elements of a buffer have been written.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/base/dim_prover.h"
#include "compiler/base/type_context.h"

namespace tenon::compiler::loop {

// A loop around a statement, 0 <= var < extent, or an index that is computed before the statement. Every one has a
// variable of its own.
struct EnclosingLoop {
  Symbol var{};
  Dim extent;
  bool computed = false;
};

// A statement that writes one element in each iteration of its enclosing loops, or none if a guard left < right fails.
struct ElementWrite {
  Dims indices;
  std::vector<EnclosingLoop> loops;
  std::vector<std::pair<Dim, Dim>> guards;
};

// Conditions, each a dim that must be >= 0, under which the write has written `element` after all of its loops but the
// first `shared` have ended; the write and the reader are in the same iteration of the shared loops. Nothing if the
// write's indices cannot be solved.
std::optional<Dims> write_conditions(TypeContext& context, const std::vector<Table>& tables, const ElementWrite& write,
                                     size_t shared, const Dims& element);

// Whether, under the facts, at least one of the alternatives holds; which one may differ from case to case.
bool any_alternative_holds(TypeContext& context, const DimProver& prover, Dims facts, std::vector<Dims> alternatives);

}  // namespace tenon::compiler::loop
