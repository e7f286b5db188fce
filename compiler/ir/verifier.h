// Checks that a module keeps what the IR promises; passes rely on it and do not check again.
#pragma once

#include "compiler/ir/module.h"

namespace tenon::compiler {

// Each variable is bound once and before its use; every type is the one that its operator's rule gives; constants and
// functions exist; the result has the declared type; no function reaches itself (in the first-order core that would
// never end). A finding is a bug of the pass that made the module, and the Diagnostic says so (Fault::kInternal).
Status verify(Context& context, const Module& module);

}  // namespace tenon::compiler
