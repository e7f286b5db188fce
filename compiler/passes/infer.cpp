// Infers every type again from the parameters' types.
#include "compiler/passes/passes.h"

namespace tenon::compiler {

Expected<Module> infer(Context& context, Module module) {
  return rewrite(context, std::move(module), [](Builder&, Binding&) { return std::nullopt; });
}

Pass infer_pass() { return {"infer", "Infers the types of all bindings again from the parameters'.", infer}; }

}  // namespace tenon::compiler
