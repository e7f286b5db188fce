// Removes unused bindings and constants, and, where the module has a @main, functions that are unreachable from it.
#include <algorithm>
#include <set>

#include "compiler/ir/dependencies.h"
#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// Removes unused bindings from the last to the first; a binding with an effect stays, with its operands.
class Sweep {
 public:
  Sweep(const Effects& effects, const Function& function)
      : effects_(effects), function_(function), live_(function.vars.size(), false) {}

  void block(Block& block) {
    use(block.result);
    auto& bindings = block.bindings;
    std::vector<bool> kept(bindings.size());
    for (size_t i = bindings.size(); i-- > 0;) {
      Value& value = bindings[i].value;
      kept[i] = live_[index(bindings[i].var)] || effects_.of(function_, value) != Effect::kNone;
      if (!kept[i]) continue;
      for_each_operand(std::as_const(value), [&](const Atom& atom) { use(atom); });
      for_each_block(value, [&](Block& inner) { this->block(inner); });
    }
    size_t i = 0;
    std::erase_if(bindings, [&](const Binding&) { return !kept[i++]; });
  }

 private:
  void use(const Atom& atom) {
    if (auto* var = std::get_if<VarId>(&atom)) live_[index(*var)] = true;
  }

  const Effects& effects_;
  const Function& function_;
  std::vector<bool> live_;
};

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
  for_each_function(module, [&](Symbol, Function& function) { for_each_use(function.body, keep); });
  module.constants = std::move(kept);
}

// A module without @main is a library of functions, all of which are kept.
void drop_unreachable(Symbol main, Module& module) {
  if (!module.function(main)) return;
  const std::vector<Symbol> found = reachable_globals(module, main);
  const std::set<Symbol> reached(found.begin(), found.end());
  std::erase_if(module.globals, [&](const auto& global) { return !reached.contains(global.first); });
}

}  // namespace

Expected<Module> dead_code(Context& context, Module module) {
  const Effects effects(context, module);
  for_each_function(module, [&](Symbol, Function& function) { Sweep(effects, function).block(function.body); });
  drop_unreachable(context.symbol("main"), module);
  TENON_TRY_ASSIGN(dense, infer(context, std::move(module)));  // renumbers the variables
  drop_unused_constants(*dense);
  return dense;
}

Pass dead_code_pass() { return {"dead_code", "Removes unused bindings, constants and functions.", dead_code}; }

}  // namespace tenon::compiler
