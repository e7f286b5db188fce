// Drops bindings and constants that nothing uses.
#include <algorithm>

#include "compiler/ir/try.h"
#include "compiler/passes/passes.h"

namespace tenon::compiler {
namespace {

// The core has no effects, so what is not used may go.
void drop_unused(Function& function) {
  std::vector<bool> live(function.vars.size(), false);
  auto use = [&](const Atom& atom) {
    if (auto* var = std::get_if<VarId>(&atom)) live[index(*var)] = true;
  };
  use(function.body.result);
  auto& bindings = function.body.bindings;
  for (size_t i = bindings.size(); i-- > 0;) {
    if (live[index(bindings[i].var)]) for_each_operand(std::as_const(bindings[i].value), use);
  }
  std::erase_if(bindings, [&](const Binding& binding) { return !live[index(binding.var)]; });
}

void drop_unused_constants(Module& module) {
  std::vector<ConstId> renamed(module.constants.size(), ConstId{UINT32_MAX});
  std::vector<runtime::Tensor> kept;
  auto keep = [&](Atom& atom) {
    auto* constant = std::get_if<ConstId>(&atom);
    if (!constant) return;
    ConstId& name = renamed[index(*constant)];
    if (name == ConstId{UINT32_MAX}) {
      name = static_cast<ConstId>(kept.size());
      kept.push_back(module.constants[index(*constant)]);
    }
    atom = name;
  };
  for (auto& [name, global] : module.globals) {
    Function& function = std::get<Function>(global);
    for (Binding& binding : function.body.bindings) for_each_operand(binding.value, keep);
    keep(function.body.result);
  }
  module.constants = std::move(kept);
}

}  // namespace

Expected<Module> dead_code(Context& context, Module module) {
  for (auto& [name, global] : module.globals) drop_unused(std::get<Function>(global));
  TENON_TAKE(dense, infer(context, std::move(module)));  // numbers the variables anew
  drop_unused_constants(*dense);
  return dense;
}

}  // namespace tenon::compiler
