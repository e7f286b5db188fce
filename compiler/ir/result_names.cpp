// The search for the named results of a function.
#include "compiler/ir/result_names.h"

#include <algorithm>

#include "support/try.h"

namespace tenon::compiler {

std::vector<bool> named_results(const Context& context, const Function& function) {
  std::vector<bool> results(function.vars.size(), false);
  const auto record = [&](const Atom& atom) {
    auto* var = std::get_if<VarId>(&atom);
    if (!var || index(*var) >= results.size()) return;
    results[index(*var)] = !context.name(function.info(*var).name).empty();
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

Expected<Atom> ResultNames::keep(Builder& builder, Atom atom, const VarInfo& info) {
  auto* var = std::get_if<VarId>(&atom);
  const bool taken = !var || (index(*var) < user_visible_.size() && user_visible_[index(*var)]);
  if (taken) {
    TENON_TRY_ASSIGN(type, builder.type_of(atom));
    if (!type->tensor() || (var && builder.function().info(*var).name == info.name)) return atom;
    TENON_TRY_ASSIGN(copy, builder.apply(ops::kIdentity, {atom}, {}, builder.context().name(info.name)));
    atom = *copy;
    var = std::get_if<VarId>(&atom);
  } else {
    builder.function().vars[index(*var)].name = info.name;
  }
  if (user_visible_.size() <= index(*var)) user_visible_.resize(index(*var) + 1);
  user_visible_[index(*var)] = true;
  return atom;
}

}  // namespace tenon::compiler
