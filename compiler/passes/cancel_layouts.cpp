// Moves transposes, and layout_transforms back to plain layouts, down through elementwise operators and concatenations,
// until opposite ones meet and cancel. A change of layout moves only where nothing else needs its result, so there are
// never more of them than before.
#include <algorithm>

#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;

// Whether the result at a place depends on the operands at that place alone, whatever the place is.
bool is_elementwise(const Operator& op) {
  if (op.pattern != OpPattern::kElementwise && op.pattern != OpPattern::kBroadcast) return false;
  // What is done differently along an axis says so by an attribute; batch_norm has its axis from convention.
  if (op.attribute("axis") || op.attribute("axes") || op.name == "batch_norm") return false;
  return op.pattern == OpPattern::kElementwise || op.attributes.empty();
}

bool changes_layout(const Apply& apply) {
  if (apply.op->name == "transpose") return true;
  // Lanes that are filled up hold zeros in front of an operator, and what it makes of them behind it.
  return apply.op->name == "layout_transform" &&
         string_attr(apply.attrs, "to").find_first_of("0123456789") == std::string::npos;
}

class Sinking {
 public:
  explicit Sinking(const Function& function) : old_(function), uses_(use_counts(function)), made_by_(uses_.size()) {
    for_each_binding(function.body, [&](const Binding& binding) { made_by_[index(binding.var)] = &binding; });
  }

  Expected<std::optional<Atom>> step(Builder& builder, Binding& binding) {
    auto* apply = std::get_if<Apply>(&binding.value);
    const bool concat = apply && apply->op->name == "concat";
    if (!apply || (!concat && !is_elementwise(*apply->op))) return std::nullopt;
    auto* old = std::get_if<Apply>(&made_by_[index(binding.var)]->value);
    if (!old || old->args.size() != apply->args.size()) return std::nullopt;

    // All operands that are no constants are the same change of layout, each used here alone.
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
      if (layout.op->name != "transpose") return std::nullopt;
      const int64_t axis = int_attr(inner.attrs, "axis");
      inner.attrs["axis"] = ints_attr(layout.attrs, "axes")[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
    }
    const VarInfo& info = old_.info(binding.var);
    TENON_TRY_ASSIGN(made, builder.bind(std::move(inner), info.name));
    binding.value = Apply{layout.op, layout.attrs, {*made}};
    return std::nullopt;
  }

 private:
  // The constant that the change of layout would make of the result; nothing where there is none.
  std::optional<Atom> moved(Builder& builder, const runtime::Tensor& constant, const Apply& layout, int64_t rank,
                            bool concat) const {
    if (constant.size() == 1 && !concat) return builder.constant(constant.reshaped({}));
    if (layout.op->name != "transpose" || static_cast<int64_t>(constant.shape().size()) > rank) return std::nullopt;
    runtime::Shape shape = constant.shape();
    shape.insert(shape.begin(), static_cast<size_t>(rank) - shape.size(), 1);
    const Ints& axes = ints_attr(layout.attrs, "axes");
    Ints back(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) back[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
    const runtime::Tensor whole = constant.reshaped(shape);
    auto turned = layout.op->reference({{"axes", back}}, std::span(&whole, 1));
    if (!turned) return std::nullopt;
    return builder.constant(std::move(turned->front()));
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
