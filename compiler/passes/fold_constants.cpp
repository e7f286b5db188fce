// Constant folding: evaluates operators whose operands are all constants.
#include <algorithm>

#include "compiler/passes/constant_uses.h"
#include "compiler/passes/passes.h"

namespace tenon::compiler {
namespace {

// A result that is larger than its operands would cost more in the file than it saves, unless it is small.
constexpr int64_t kSmallBytes = 1 << 16;
constexpr int64_t kMaxBytes = int64_t{1} << 30;

// quantize and dequantize of constants stay: they hold the scales of a quantized model.
bool carries_scales(const Operator& op) { return op.is(ops::kQuantize) || op.is(ops::kDequantize); }

}  // namespace

std::optional<Atom> fold(Builder& builder, const Value& value, int64_t max_bytes) {
  auto* apply = std::get_if<Apply>(&value);
  if (!apply || !apply->op->reference || !apply->computed.empty() || carries_scales(*apply->op)) return std::nullopt;
  std::vector<runtime::Tensor> inputs;
  int64_t bytes = 0;
  for (const Atom& arg : apply->args) {
    const runtime::Tensor* constant = constant_of(builder.module(), arg);
    if (!constant) return std::nullopt;
    inputs.push_back(*constant);
    bytes += static_cast<int64_t>(constant->bytes().size());
  }
  const Expected<Type> type = infer_value(builder.context(), builder.module(), builder.function(), value);
  const auto shape = type && type->tensor() ? type->tensor()->shape() : std::nullopt;
  if (!shape) return std::nullopt;
  const int64_t elements = runtime::element_count(*shape), width = runtime::bytes(type->tensor()->dtype);
  if (elements > kMaxBytes / width || elements * width > std::max(max_bytes, 4 * bytes)) return std::nullopt;
  auto result = apply->op->reference(apply->attrs, inputs);
  if (!result) return std::nullopt;
  return builder.constant(std::move(result->front()));
}

Expected<Module> fold_constants(Context& context, Module module) {
  ConstantUses uses(module);
  return rewrite(context, std::move(module), [&](Builder& builder, Binding& binding) -> Expected<std::optional<Atom>> {
    const std::optional<Atom> folded = fold(builder, binding.value, kSmallBytes);
    if (folded) for_each_operand(binding.value, [&](const Atom& atom) { uses.remove(builder.module(), atom); });
    return folded;
  });
}

Pass fold_constants_pass() {
  return {"fold_constants", "Evaluates operators whose operands are all constants.", fold_constants};
}

}  // namespace tenon::compiler
