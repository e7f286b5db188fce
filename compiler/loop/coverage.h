// Which elements of a buffer have been written, as far as it can be proved.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/base/dim_prover.h"
#include "compiler/base/type_context.h"

namespace tenon::compiler::loop {

// What a statement runs in: a loop, 0 <= var < extent, or an index that was computed before it. Each has a variable of
// its own.
struct Around {
  Symbol var{};
  Dim extent;
  bool computed = false;
};

// A statement that writes one element in each iteration of what is around it, or none where left < right does not hold.
struct Written {
  Dims at;
  std::vector<Around> around;
  std::vector<std::pair<Dim, Dim>> where;
};

// Conditions, each a dim that must be >= 0, under which the write has written element `at`, when those of its loops
// have ended that stand behind the first `shared`, in whose iteration both are. Nothing where its indices are not
// understood.
std::optional<Dims> wrote(TypeContext& context, const Written& write, size_t shared, const Dims& at);

// Whether one of the alternatives, whichever, always holds where the facts do.
bool one_holds(TypeContext& context, const DimProver& prover, Dims facts, std::vector<Dims> alternatives);

}  // namespace tenon::compiler::loop
