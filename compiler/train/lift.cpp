#include "compiler/train/lift.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/operator.h"

namespace tenon::compiler {
namespace {

bool is_weight(const runtime::Tensor& tensor) {
  return runtime::kReals.contains(tensor.dtype()) && !tensor.shape().empty();
}

// The constants that a function may train, in the order of their first use, and their names.
std::vector<LiftedParameter> weights(const Context& context, const Module& module, const Function& function) {
  std::vector<LiftedParameter> found;
  std::set<ConstId> seen;
  std::set<std::string, std::less<>> taken;
  for (const VarId param : function.params) taken.emplace(context.name(function.info(param).name));
  const auto add = [&](const Atom& atom, const std::string& name) {
    const auto* id = std::get_if<ConstId>(&atom);
    if (!id || !is_weight(module.constant(*id)) || !seen.insert(*id).second) return;
    std::string unique = name;
    for (int i = 1; !taken.insert(unique).second; ++i) unique = fmt::format("{}_{}", name, i);
    found.push_back({std::move(unique), *id});
  };
  for_each_binding(function.body, [&](const Binding& binding) {
    const std::string_view name = context.name(function.info(binding.var).name);
    if (const auto* apply = std::get_if<Apply>(&binding.value)) {
      const std::string_view base = name.empty() ? std::string_view(apply->op->name) : name;
      for (size_t i = 0; i < apply->args.size(); ++i) {
        const auto& inputs = apply->op->inputs;
        const std::string argument =
            inputs.empty() ? fmt::format("{}", i) : inputs[std::min(i, inputs.size() - 1)].name;
        add(apply->args[i], fmt::format("{}.{}", base, argument));
      }
    }
    if (const auto* call = std::get_if<Call>(&binding.value)) {
      const auto* symbol = std::get_if<Symbol>(&call->callee);
      const Function* callee = symbol ? module.function(*symbol) : nullptr;
      for (size_t i = 0; callee && i < call->args.size(); ++i) {
        const std::string_view base = name.empty() ? context.name(*symbol) : name;
        add(call->args[i], fmt::format("{}.{}", base, context.name(callee->info(callee->params[i]).name)));
      }
    }
    for_each_operand(binding.value,
                     [&](const Atom& atom) { add(atom, name.empty() ? "weight" : fmt::format("{}.weight", name)); });
  });
  return found;
}

}  // namespace

Expected<std::vector<LiftedParameter>> lift_parameters(Context& context, Module& module, Symbol entry,
                                                       const std::vector<std::string>& frozen) {
  Function& function = *module.function(entry);
  std::vector<LiftedParameter> found = weights(context, module, function);
  std::vector<std::string> names;
  for (const LiftedParameter& parameter : found) names.push_back(parameter.name);
  for (const std::string& name : frozen) {
    if (std::erase_if(found, [&](const LiftedParameter& parameter) { return parameter.name == name; }) > 0) continue;
    return error(fmt::format("no weight has the name '{}'", name), {},
                 fmt::format("the weights are {}", fmt::join(names, ", ")), Fault::kUsage);
  }
  if (found.empty()) {
    return error(
        fmt::format("@{} has no weights to train: none of its constants is a tensor of floats", context.name(entry)),
        {}, "weights are constants of the model with at least one axis");
  }
  std::map<ConstId, VarId> vars;
  std::vector<VarId> params;
  for (const LiftedParameter& parameter : found) {
    const runtime::Tensor& tensor = module.constant(parameter.constant);
    params.push_back(static_cast<VarId>(function.vars.size()));
    function.vars.push_back({context.tensor(tensor.shape(), tensor.dtype()), context.symbol(parameter.name), {}});
    vars.emplace(parameter.constant, params.back());
  }
  function.params.insert(function.params.begin(), params.begin(), params.end());
  for_each_use(function.body, [&](Atom& atom) {
    const auto* id = std::get_if<ConstId>(&atom);
    const auto var = id ? vars.find(*id) : vars.end();
    if (var != vars.end()) atom = var->second;
  });
  return found;
}

}  // namespace tenon::compiler
