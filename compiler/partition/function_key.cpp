#include "compiler/partition/function_key.h"

#include <fmt/format.h>

#include "compiler/ir/literal.h"
#include "compiler/ir/operator.h"

namespace tenon::compiler {

std::optional<std::string> function_key(const Context& context, const Module& module, const Function& function) {
  std::string key;
  std::map<VarId, size_t> positions;
  for (const VarId param : function.params) {
    positions.emplace(param, positions.size());
    key += context.str(function.type(param)) + ";";
  }
  const auto operand = [&](const Atom& atom) {
    if (const auto* var = std::get_if<VarId>(&atom)) {
      key += fmt::format("%{},", positions.at(*var));
    } else if (const auto* id = std::get_if<ConstId>(&atom)) {
      const runtime::Tensor& tensor = module.constant(*id);
      key += fmt::format("{}{}", runtime::name(tensor.dtype()), runtime::to_string(tensor.shape()));
      const auto bytes = tensor.bytes();
      if (bytes.size() <= kComparedBytes) key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      key += ",";
    } else {
      key += fmt::format("@{},", context.name(std::get<Symbol>(atom)));
    }
  };
  for (const Binding& binding : function.body.bindings) {
    if (const auto* apply = std::get_if<Apply>(&binding.value)) {
      key += apply->op->name;
      for (const auto& [name, value] : apply->attrs) key += fmt::format("[{}={}]", name, attribute(value));
      for (const auto& [name, value] : apply->computed) {
        key += fmt::format("[{}=", name);
        if (const auto* atom = std::get_if<Atom>(&value)) operand(*atom);
        else
          for (const Dim dim : std::get<Dims>(value)) key += context.str(dim) + ",";
        key += "]";
      }
    } else if (const auto* project = std::get_if<Project>(&binding.value)) {
      key += fmt::format(".{}", project->index);
    } else if (!std::holds_alternative<Tuple>(binding.value)) {
      return std::nullopt;
    }
    key += "(";
    for_each_operand(binding.value, operand);
    key += ")" + context.str(function.type(binding.var)) + ";";
    positions.emplace(binding.var, positions.size());
  }
  operand(function.body.result);
  return key;
}

}  // namespace tenon::compiler
