// Expands the derivatives of calls (compiler/gradient).
#include "compiler/gradient/differentiate.h"

#include "compiler/passes/passes.h"

namespace tenon::compiler {

Pass differentiate_pass() {
  return {"differentiate", "Expands gradients and pullbacks into functions and tapes.", differentiate};
}

}  // namespace tenon::compiler
