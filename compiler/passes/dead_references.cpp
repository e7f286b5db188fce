// Removal of references that nothing reads: their writes cannot be observed. A reference is dead where each of its uses
// is the target of a write; a use in a lambda, a tuple or a call may lead to a read.
#include <vector>

#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

class ReferenceSweep {
 public:
  explicit ReferenceSweep(Function& function) : reads_(function.vars.size(), 0), made_(function.vars.size(), nullptr) {
    for_each_binding(function.body, [&](Binding& binding) {
      if (std::holds_alternative<MakeReference>(binding.value)) made_[index(binding.var)] = &binding;
    });
    writes_.resize(function.vars.size());
    for_each_binding(function.body, [&](Binding& binding) {
      auto* write = std::get_if<WriteReference>(&binding.value);
      auto* target = write ? std::get_if<VarId>(&write->reference) : nullptr;
      if (target && made_[index(*target)]) {
        writes_[index(*target)].push_back(&binding);
        --reads_[index(*target)];
      }
    });
    for_each_use(function.body, [&](const Atom& atom) {
      if (auto* var = std::get_if<VarId>(&atom)) ++reads_[index(*var)];
    });
  }

  bool run() {
    std::vector<VarId> open;
    for (size_t i = 0; i < made_.size(); ++i) {
      if (made_[i] && reads_[i] == 0) open.push_back(static_cast<VarId>(i));
    }
    const bool changed = !open.empty();
    // The content of a dead reference may be a reference, which then has one use less.
    const auto release = [&](const Atom& atom) {
      auto* var = std::get_if<VarId>(&atom);
      if (var && --reads_[index(*var)] == 0 && made_[index(*var)]) open.push_back(*var);
    };
    while (!open.empty()) {
      const VarId dead = open.back();
      open.pop_back();
      for (Binding* write : writes_[index(dead)]) {
        const Atom content = std::get<WriteReference>(write->value).value;
        write->value = Tuple{};
        release(content);
      }
      removed_.push_back(dead);
      release(std::get<MakeReference>(made_[index(dead)]->value).value);
    }
    return changed;
  }

  const std::vector<VarId>& removed() const { return removed_; }

 private:
  std::vector<int64_t> reads_;  // by variable: the uses other than as the target of a write
  std::vector<Binding*> made_;  // by variable: its MakeReference
  std::vector<std::vector<Binding*>> writes_;
  std::vector<VarId> removed_;
};

void remove(Block& block, const std::vector<bool>& dead) {
  std::erase_if(block.bindings, [&](const Binding& binding) { return dead[index(binding.var)]; });
  for (Binding& binding : block.bindings) {
    for_each_block(binding.value, [&](Block& inner) { remove(inner, dead); });
  }
}

}  // namespace

Expected<Module> dead_references(Context& context, Module module) {
  // A dead reference may hold a closure that reads another one.
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    bool changed = false;
    for_each_function(module, [&](Symbol, Function& function) {
      ReferenceSweep sweep(function);
      if (!sweep.run()) return;
      changed = true;
      std::vector<bool> dead(function.vars.size(), false);
      for (const VarId var : sweep.removed()) dead[index(var)] = true;
      remove(function.body, dead);
    });
    if (!changed) break;
    TENON_TRY_ASSIGN(live, dead_code(context, std::move(module)));
    module = std::move(*live);
  }
  return module;
}

Pass dead_references_pass() {
  return {"dead_references", "Removes references that are written and never read.", dead_references};
}

}  // namespace tenon::compiler
