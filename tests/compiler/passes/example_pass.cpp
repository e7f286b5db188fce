// An example of a pass, as it would stand in compiler/passes: a rectifier in front of a maximum goes behind it, where
// fewer elements are left to rectify.
#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {

Expected<Module> rectify_late(Context& context, Module module) {
  return rewrite(context, std::move(module), [](Builder& builder, Binding& binding) -> Expected<std::optional<Atom>> {
    auto* pool = std::get_if<Apply>(&binding.value);
    if (!pool || pool->op->name != "max_pool2d") return std::nullopt;
    const Apply* below = builder.application(pool->args[0], "relu");
    if (!below) return std::nullopt;
    Apply relu = *below;  // `below` is gone when the next binding is made
    TENON_TRY_ASSIGN(pooled, builder.apply("max_pool2d", {relu.args[0]}, pool->attrs));
    relu.args[0] = *pooled;
    binding.value = std::move(relu);  // the binding keeps its place and its name
    return std::nullopt;
  });
}

Pass rectify_late_pass() {
  return {"rectify_late", "Rectifiers go behind the maximum that follows them.", rectify_late};
}

}  // namespace tenon::compiler
