// Work that recurs deeply: on the trees of expressions and types, whose depth a program's text determines.
#pragma once

#include "support/function_ref.h"

namespace tenon {

// Runs `work` on a thread with a stack of 1 GiB, of which only the used pages are memory, and returns when it has
// ended. An exception of `work` is thrown again here. Where no such thread can be started, `work` runs on the caller's
// stack.
void with_deep_stack(FunctionRef<void()> work);

}  // namespace tenon
