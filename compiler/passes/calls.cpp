#include "compiler/passes/calls.h"

#include <algorithm>

namespace tenon::compiler {

size_t count_bindings(const Block& block) {
  size_t count = 0;
  for_each_binding(block, [&](const Binding&) { ++count; });
  return count;
}

size_t depth_of(const Block& block) {
  size_t deepest = 0;
  for (const Binding& binding : block.bindings) {
    for_each_block(binding.value, [&](const Block& inner) { deepest = std::max(deepest, 1 + depth_of(inner)); });
  }
  return deepest;
}

void for_each_callee(const Function& function, FunctionRef<void(Symbol)> visit) {
  for_each_binding(function.body, [&](const Binding& binding) {
    const Call* call = call_of(binding.value);
    if (auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr) visit(*symbol);
  });
  for_each_use(function.body, [&](const Atom& atom) {
    if (auto* symbol = std::get_if<Symbol>(&atom)) visit(*symbol);
  });
}

CallOrder call_order(const Module& module) {
  CallOrder result;
  std::map<Symbol, std::set<Symbol>> callees, callers;
  for_each_function(module, [&](Symbol name, const Function& function) {
    callees[name];
    for_each_callee(function, [&](Symbol callee) {
      ++result.sites[callee];
      if (!module.function(callee)) return;
      callees[name].insert(callee);
      callers[callee].insert(name);
    });
  });
  std::set<Symbol> remaining;
  for (const auto& [name, called] : callees) remaining.insert(name);
  // Repeatedly removes the functions without remaining edges: those that are not on a cycle, nor on a path to one.
  const auto peel = [&](std::map<Symbol, std::set<Symbol>>& edges, std::map<Symbol, std::set<Symbol>>& back) {
    std::map<Symbol, size_t> open;
    std::vector<Symbol> ready, order;
    for (const Symbol name : remaining) {
      for (const Symbol other : edges[name]) open[name] += remaining.contains(other);
      if (open[name] == 0) ready.push_back(name);
    }
    while (!ready.empty()) {
      const Symbol name = ready.back();
      ready.pop_back();
      order.push_back(name);
      remaining.erase(name);
      for (const Symbol other : back[name]) {
        if (remaining.contains(other) && --open[other] == 0) ready.push_back(other);
      }
    }
    return order;
  };
  result.order = peel(callees, callers);
  const std::vector<Symbol> above = peel(callers, callees);
  result.recursive = remaining;
  result.order.insert(result.order.end(), remaining.begin(), remaining.end());
  result.order.insert(result.order.end(), above.rbegin(), above.rend());
  return result;
}

}  // namespace tenon::compiler
