// Drops bindings and constants that nothing uses.
#include <algorithm>

#include "compiler/ir/effects.h"
#include "compiler/ir/try.h"
#include "compiler/passes/passes.h"

namespace tenon::compiler {
namespace {

// Drops from the back what nothing uses; what has an effect stays, and with it what it uses.
class Sweep {
 public:
  Sweep(const Effects& effects, Function& function) : effects_(effects), live_(function.vars.size(), false) {}

  void block(Block& block) {
    use(block.result);
    auto& bindings = block.bindings;
    std::vector<bool> kept(bindings.size());
    for (size_t i = bindings.size(); i-- > 0;) {
      Value& value = bindings[i].value;
      kept[i] = live_[index(bindings[i].var)] || effects_.of(value) != Effect::kNone;
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

}  // namespace

Expected<Module> dead_code(Context& context, Module module) {
  const Effects effects(module);
  for_each_function(module, [&](Symbol, Function& function) { Sweep(effects, function).block(function.body); });
  TENON_TAKE(dense, infer(context, std::move(module)));  // numbers the variables anew
  drop_unused_constants(*dense);
  return dense;
}

Pass dead_code_pass() { return {"dead_code", "Drops bindings and constants that nothing uses.", dead_code}; }

}  // namespace tenon::compiler
