// Moves transposes, and layout_transforms back to plain layouts, through elementwise operators and concatenations
// towards the results, until inverse ones meet and cancel. A layout change moves only where its result has no other
// user, so their count never grows.
#include <algorithm>

#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;

// Whether each element of the result depends only on the elements of the operands at the same index, at every index
// alike.
bool is_elementwise(const Operator& op) {
  if (op.pattern != OpPattern::kElementwise && op.pattern != OpPattern::kBroadcast) return false;
  // An operator that depends on an axis has an attribute for it, except batch_norm, whose axis is implied.
  if (op.attribute("axis") || op.attribute("axes") || op.is(ops::kBatchNorm)) return false;
  return op.pattern == OpPattern::kElementwise || op.attributes.empty();
}

bool changes_layout(const Apply& apply) {
  if (apply.op->is(ops::kTranspose)) return true;
  // Padding lanes hold zeros before an operator, but not after it, so only transforms to plain layouts move.
  return apply.op->is(ops::kLayoutTransform) &&
         string_attr(apply.attrs, "to").find_first_of("0123456789") == std::string::npos;
}

class Sinking {
 public:
  explicit Sinking(const Function& function) : old_(function), uses_(use_counts(function)), made_by_(uses_.size()) {
    for_each_binding(function.body, [&](const Binding& binding) { made_by_[index(binding.var)] = &binding; });
  }

  Expected<std::optional<Atom>> step(Builder& builder, Binding& binding) {
    auto* apply = std::get_if<Apply>(&binding.value);
    const bool concat = apply && apply->op->is(ops::kConcat);
    if (!apply || (!concat && !is_elementwise(*apply->op))) return std::nullopt;
    auto* old = std::get_if<Apply>(&made_by_[index(binding.var)]->value);
    if (!old || old->args.size() != apply->args.size()) return std::nullopt;

    // All operands that are not constants must be the same layout change, with no other user.
    const Apply* change = nullptr;
    for (size_t i = 0; i < apply->args.size(); ++i) {
      if (std::holds_alternative<ConstId>(apply->args[i])) continue;
      const Apply* found = builder.application(apply->args[i]);
      auto* var = std::get_if<VarId>(&old->args[i]);
      if (!found || !var || !changes_layout(*found)) return std::nullopt;
      if (uses_[index(*var)] != static_cast<uint32_t>(std::ranges::count(old->args, old->args[i]))) return std::nullopt;
      if (change && (found->op != change->op || found->attrs != change->attrs)) return std::nullopt;
      const TensorType* type = builder.tensor_type(found->args[0]);
      if (!type || (change && type->rank() != builder.tensor_type(change->args[0])->rank())) return std::nullopt;
      change = found;
    }
    if (!change) return std::nullopt;
    const Apply layout = *change;
    const int64_t rank = builder.tensor_type(layout.args[0])->rank();
    Apply inner{apply->op, apply->attrs, {}};
    for (const Atom& atom : apply->args) {
      if (!std::holds_alternative<ConstId>(atom)) {
        inner.args.push_back(builder.application(atom)->args[0]);
        continue;
      }
      auto constant = moved(builder, *constant_of(builder.module(), atom), layout, rank, concat);
      if (!constant) return std::nullopt;
      inner.args.push_back(*constant);
    }
    if (concat) {
      if (!layout.op->is(ops::kTranspose)) return std::nullopt;
      const int64_t axis = int_attr(inner.attrs, "axis");
      inner.attrs["axis"] = ints_attr(layout.attrs, "axes")[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
    }
    const VarInfo& info = old_.info(binding.var);
    TENON_TRY_ASSIGN(made, builder.bind(std::move(inner), info.name));
    binding.value = Apply{layout.op, layout.attrs, {*made}};
    return std::nullopt;
  }

 private:
  // The constant whose layout change is `constant`; nothing where it does not exist.
  std::optional<Atom> moved(Builder& builder, const runtime::Tensor& constant, const Apply& layout, int64_t rank,
                            bool concat) const {
    if (constant.size() == 1 && !concat) return builder.constant(constant.reshaped({}));
    if (!layout.op->is(ops::kTranspose) || static_cast<int64_t>(constant.shape().size()) > rank) return std::nullopt;
    runtime::Shape shape = constant.shape();
    shape.insert(shape.begin(), static_cast<size_t>(rank) - shape.size(), 1);
    const Ints& axes = ints_attr(layout.attrs, "axes");
    Ints back(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) back[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
    const runtime::Tensor whole = constant.reshaped(shape);
    auto transposed = layout.op->reference({{"axes", back}}, std::span(&whole, 1));
    if (!transposed) return std::nullopt;
    return builder.constant(std::move(transposed->front()));
  }

  const Function& old_;
  std::vector<uint32_t> uses_;
  std::vector<const Binding*> made_by_;  // by variable; nullptr for parameters and parts of patterns
};

}  // namespace

Expected<Module> cancel_layouts(Context& context, Module module) {
  for (auto& [name, global] : module.globals) {
    auto* function = std::get_if<Function>(&global);
    if (!function) continue;
    Sinking sinking(*function);
    TENON_TRY_ASSIGN(sunk, rewrite(context, module, *function,
                                   [&](Builder& builder, Binding& binding) { return sinking.step(builder, binding); }));
    *function = std::move(*sunk);
  }
  return simplify(context, std::move(module));
}

Pass cancel_layouts_pass() {
  return {"cancel_layouts",
          "Moves transposes and layouts down through elementwise operators until opposite ones cancel.",
          cancel_layouts};
}

}  // namespace tenon::compiler
