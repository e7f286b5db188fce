// What both kinds of the primitive pipeline require of a loop.
#pragma once

#include "compiler/loop/tree.h"

namespace tenon::compiler::loop {

// The body of the loop inside its leading Allocs.
Body& inner_body(For& loop);
// Whether only stages depend on the loop's variable, so that statements of the loop may run in other iterations.
Status only_stages_depend(const TypeContext& context, const Function& function, const For& loop);
// Whether a statement of the loop's inner body may run before the previous iteration has ended. The error states the
// reason.
Status may_run_ahead(TypeContext& context, Function& function, const For& loop, Body& body, size_t position);

}  // namespace tenon::compiler::loop
