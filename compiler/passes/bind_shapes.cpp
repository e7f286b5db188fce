// Replaces dim variables of a function by constant sizes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "compiler/ir/dim_names.h"
#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {

Expected<Module> bind_shapes(Context& context, Module module, Symbol name,
                             const std::map<std::string, int64_t>& shapes) {
  Function* function = module.function(name);
  if (!function) return error(fmt::format("there is no function @{}", context.name(name)));
  std::map<Symbol, Dim> values;
  for (const auto& [text, size] : shapes) {
    const std::optional<Symbol> found = find_dim(context, *function, text);
    if (!found) {
      std::vector<std::string_view> variables;
      for (Symbol dim : function->dims) variables.push_back(context.name(dim));
      return error(
          fmt::format("@{} has no unknown size '{}'", context.name(name), text), "",
          variables.empty() ? "all of its sizes are fixed" : fmt::format("it has {}", fmt::join(variables, ", ")));
    }
    const Symbol variable = *found;
    if (const auto bound = function->bounds.find(variable); bound != function->bounds.end()) {
      if (!bound->second.contains(size)) {
        return error(fmt::format("the size {} of @{} must be in {}, found {}", text, context.name(name),
                                 str(bound->second), size));
      }
      function->bounds.erase(bound);
    }
    values.emplace(variable, context.dim(size));
  }
  std::erase_if(function->dims, [&](Symbol variable) { return values.contains(variable); });
  substitute(context, *function, values);
  TENON_TRY_ASSIGN(bound, rewrite(context, module, *function, [](Builder&, Binding&) { return std::nullopt; }));
  *function = std::move(*bound);
  return module;
}

}  // namespace tenon::compiler
