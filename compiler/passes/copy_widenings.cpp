// A widening of bytes for each contraction that reads it: kernels of contractions read the bytes themselves, but only
// the one user of a widening (fuse.cpp); one for several would be stored as i32, four times its size, and be multiplied
// without instructions for bytes.
#include <optional>
#include <utility>

#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

const Apply* byte_cast(const Builder& builder, const Atom& atom) {
  const Apply* cast = builder.application(atom, ops::kCast);
  const TensorType* from = cast ? builder.tensor_type(cast->args[0]) : nullptr;
  const TensorType* to = cast ? builder.tensor_type(atom) : nullptr;
  const bool widens = from && to && to->dtype == runtime::DType::kI32 &&
                      (from->dtype == runtime::DType::kI8 || from->dtype == runtime::DType::kU8);
  return widens ? cast : nullptr;
}

// A copy of the cast, or of the difference of one and a constant; nullopt where the atom is neither.
Expected<std::optional<Atom>> copied(Builder& builder, const Atom& atom) {
  if (const Apply* found = byte_cast(builder, atom)) {
    const Apply cast = *found;  // the next binding invalidates `found`
    return builder.apply(*cast.op, cast.args, cast.attrs);
  }
  const Apply* found = builder.application(atom, ops::kSubtract);
  if (!found || !std::holds_alternative<ConstId>(found->args[1]) || !byte_cast(builder, found->args[0]))
    return std::nullopt;
  Apply difference = *found;
  TENON_TRY_ASSIGN(cast, copied(builder, difference.args[0]));
  difference.args[0] = **cast;
  return builder.apply(*difference.op, difference.args, difference.attrs);
}

Expected<std::optional<Atom>> with_own_widenings(Builder& builder, Binding& binding) {
  auto* contraction = std::get_if<Apply>(&binding.value);
  if (!contraction || contraction->op->pattern != OpPattern::kAnchor) return std::nullopt;
  for (Atom& arg : contraction->args) {
    TENON_TRY_ASSIGN(own, copied(builder, arg));
    if (*own) arg = **own;
  }
  return std::nullopt;
}

}  // namespace

Expected<Module> copy_widenings(Context& context, Module module) {
  for (auto& [name, global] : module.globals) {
    auto* function = std::get_if<Function>(&global);
    // A target's functions have the form that its patterns match.
    if (!function || !function->target.empty() || !function->composite.empty()) continue;
    TENON_TRY_ASSIGN(rewritten, rewrite(context, module, *function, with_own_widenings));
    *function = std::move(*rewritten);
  }
  return dead_code(context, std::move(module));
}

Pass copy_widenings_pass() {
  return {"copy_widenings", "Gives each contraction its own widening of bytes, which its kernel includes.",
          copy_widenings};
}

}  // namespace tenon::compiler
