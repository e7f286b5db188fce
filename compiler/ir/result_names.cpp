// The search for the named results of a function.
#include "compiler/ir/result_names.h"

#include <algorithm>

namespace tenon::compiler {

std::vector<bool> named_results(const Context& context, const Function& function) {
  std::vector<bool> results(function.vars.size(), false);
  const auto record = [&](const Atom& atom) {
    auto* var = std::get_if<VarId>(&atom);
    if (!var || index(*var) >= results.size()) return;
    const std::string_view name = context.name(function.info(*var).name);
    results[index(*var)] = name.find_first_not_of("0123456789") != std::string_view::npos;
  };
  const Value* last = nullptr;
  for (const Binding& binding : function.body.bindings) {
    if (function.body.result == Atom{binding.var}) last = &binding.value;
  }
  auto* tuple = last ? std::get_if<Tuple>(last) : nullptr;
  if (tuple) std::ranges::for_each(tuple->fields, record);
  else record(function.body.result);
  return results;
}

}  // namespace tenon::compiler
