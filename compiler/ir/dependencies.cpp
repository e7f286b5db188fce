#include "compiler/ir/dependencies.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace tenon::compiler {

std::set<Symbol> callees(const Function& function) {
  std::set<Symbol> found;
  if (function.batched) found.insert(*function.batched);
  if (function.gradient) found.insert(*function.gradient);
  for_each_binding(function.body, [&](const Binding& binding) {
    const Call* call = call_of(binding.value);
    if (auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr) found.insert(*symbol);
  });
  for_each_use(function.body, [&](const Atom& atom) {
    if (auto* symbol = std::get_if<Symbol>(&atom)) found.insert(*symbol);
  });
  return found;
}

std::vector<Symbol> reachable_globals(const Module& module, Symbol from) {
  std::vector<Symbol> found{from};
  std::set<Symbol> seen{from};
  for (size_t i = 0; i < found.size(); ++i) {
    const Function* function = module.function(found[i]);
    if (!function) continue;
    for (const Symbol callee : callees(*function)) {
      if (seen.insert(callee).second) found.push_back(callee);
    }
  }
  return found;
}

Dependencies dependencies(FunctionRef<Effect(const Value&)> effect_of, const Block& block) {
  const auto size = static_cast<uint32_t>(block.bindings.size());
  std::unordered_map<VarId, uint32_t> made_by;
  for (uint32_t i = 0; i < size; ++i) made_by.emplace(block.bindings[i].var, i);
  Dependencies graph{std::vector<std::vector<uint32_t>>(size), std::vector<std::vector<uint32_t>>(size)};
  std::optional<uint32_t> effect, cast;
  std::vector<uint32_t> partial;  // applications that may fail, after the last effect
  for (uint32_t i = 0; i < size; ++i) {
    const Value& value = block.bindings[i].value;
    std::vector<uint32_t>& reads = graph.reads[i];
    const auto use = [&](const Atom& atom) {
      const auto* var = std::get_if<VarId>(&atom);
      const auto from = var ? made_by.find(*var) : made_by.end();
      if (from != made_by.end() && from->second != i) reads.push_back(from->second);
    };
    for_each_operand(value, use);
    for_each_block(value, [&](const Block& inner) { for_each_use(inner, use); });
    std::ranges::sort(reads);
    reads.erase(std::ranges::unique(reads).begin(), reads.end());
    std::vector<uint32_t>& follows = graph.follows[i];
    follows = reads;
    const bool operation = std::holds_alternative<Apply>(value);
    bool uses_dims = !operation;
    for_each_dim(value, [&](Dim) { uses_dims = true; });
    if (uses_dims && cast) follows.push_back(*cast);
    if (effect_of(value) == Effect::kNone) continue;
    if (effect) follows.push_back(*effect);
    if (operation) {
      partial.push_back(i);
      continue;
    }
    effect = i;
    follows.insert(follows.end(), partial.begin(), partial.end());
    partial.clear();
    if (std::holds_alternative<Cast>(value)) cast = i;
  }
  return graph;
}

}  // namespace tenon::compiler
