// An example of a pass, as it would be written in compiler/passes: moves a relu before a max pooling after the pooling,
// where it has fewer elements to process.
#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {

Expected<Module> relu_after_pool(Context& context, Module module) {
  return rewrite(context, std::move(module), [](Builder& builder, Binding& binding) -> Expected<std::optional<Atom>> {
    auto* pool = std::get_if<Apply>(&binding.value);
    if (!pool || !pool->op->is(ops::kMaxPool2d)) return std::nullopt;
    const Apply* operand = builder.application(pool->args[0], ops::kRelu);
    if (!operand) return std::nullopt;
    Apply relu = *operand;  // a copy: the next binding invalidates `operand`
    TENON_TRY_ASSIGN(pooled, builder.apply("max_pool2d", {relu.args[0]}, pool->attrs));
    relu.args[0] = *pooled;
    binding.value = std::move(relu);  // the binding keeps its position and its name
    return std::nullopt;
  });
}

Pass relu_after_pool_pass() {
  return {"relu_after_pool", "Moves a relu after the max pooling that follows it.", relu_after_pool};
}

}  // namespace tenon::compiler
