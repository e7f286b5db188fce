#include "compiler/ir/instantiate.h"

#include "compiler/ir/infer.h"

namespace tenon::compiler {

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
    if (auto bound = callee.bounds.find(name); bound != callee.bounds.end()) {
      const DimRange& range = bound->second;
      const DimProver& prover = solver.prover();
      const auto proved = [&](Dim lo, Dim hi) { return prover.less_equal(lo, hi) == Answer::kYes; };
      result.bounds_hold &= !range.lo || proved(context.dim(*range.lo), resolved);
      result.bounds_hold &= !range.hi || proved(resolved, context.dim(*range.hi));
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
