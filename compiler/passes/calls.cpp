#include "compiler/passes/calls.h"

#include <algorithm>

#include "compiler/ir/infer.h"

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

std::optional<Instantiation> instantiate(Context& context, const Module& module, const Function& caller,
                                         const Function& callee, const Call& call) {
  if (callee.dims.empty() && callee.types.empty()) return Instantiation{};
  Solver solver(context, caller.bounds);
  Instantiation unknown, result;
  for (const Symbol name : callee.dims) unknown.dims.emplace(name, solver.fresh_dim());
  const std::vector<Symbol> given = explicit_type_params(signature_of(context, callee));
  for (size_t i = 0; i < given.size(); ++i) unknown.types.emplace(given[i], call.types[i]);
  for (const Symbol name : callee.types) unknown.types.try_emplace(name, solver.fresh_type());
  for (size_t i = 0; i < call.args.size(); ++i) {
    auto* var = std::get_if<VarId>(&call.args[i]);
    const Expected<Type> found =
        var ? Expected<Type>(caller.type(*var)) : infer_atom(context, module, caller, call.args[i]);
    if (!found) return std::nullopt;
    const Type wanted = context.substitute(callee.type(callee.params[i]), unknown.dims, unknown.types);
    if (!solver.unify(wanted, *found)) return std::nullopt;
  }
  if (!solver.retry() || solver.pending() > 0) return std::nullopt;
  for (const auto& [name, dim] : unknown.dims) {
    const Dim resolved = solver.resolve(dim);
    if (!solver.is_resolved(resolved)) return std::nullopt;
    if (auto bound = callee.bounds.find(name); bound != callee.bounds.end()) {  // a call would check them
      const DimRange& range = bound->second;
      const DimProver& prover = solver.prover();
      if (range.lo && prover.less_equal(context.dim(*range.lo), resolved) != Answer::kYes) return std::nullopt;
      if (range.hi && prover.less_equal(resolved, context.dim(*range.hi)) != Answer::kYes) return std::nullopt;
    }
    result.dims.emplace(name, resolved);
  }
  for (const auto& [name, type] : unknown.types) {
    const Type resolved = solver.resolve(type);
    if (!solver.is_resolved(resolved)) return std::nullopt;
    result.types.emplace(name, resolved);
  }
  return result;
}

}  // namespace tenon::compiler
