#include "compiler/partition/outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <string>

#include "support/function_ref.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// Declares the dim variables of a parameter's sizes in the outlined function.
void declare_dims(const Function& from, Type type, Function& to) {
  for (const Type part : type.parts()) {
    if (!part.tensor()) continue;
    for (const Dim dim : part.tensor()->dims) {
      for_each_variable(dim, [&](Symbol name) {
        if (std::ranges::find(to.dims, name) != to.dims.end()) return;
        to.dims.push_back(name);
        if (const auto bounds = from.bounds.find(name); bounds != from.bounds.end()) to.bounds.insert(*bounds);
      });
    }
  }
}

// The dims that the value computes with and the function does not have.
std::vector<Symbol> missing_dims(const Value& value, const Function& function) {
  std::vector<Symbol> missing;
  for_each_dim(value, [&](Dim dim) {
    for_each_variable(dim, [&](Symbol name) {
      if (std::ranges::find(function.dims, name) == function.dims.end()) missing.push_back(name);
    });
  });
  return missing;
}

// A parameter of the function one of whose sizes is the dim itself.
std::optional<VarId> param_of_size(Context& context, const Function& function, Symbol dim) {
  for (const VarId param : function.params) {
    const TensorType* type = function.type(param).tensor();
    if (type && std::ranges::find(type->dims, context.dim(dim)) != type->dims.end()) return param;
  }
  return std::nullopt;
}

}  // namespace

Symbol fresh_global(Context& context, const Module& module, std::string_view base) {
  for (int i = 0;; ++i) {
    const Symbol symbol = context.symbol(fmt::format("{}_{}", base, i));
    if (!module.globals.contains(symbol)) return symbol;
  }
}

Expected<Atom> packed_results(Builder& builder, Atoms results) {
  if (results.size() == 1) return results[0];
  return builder.tuple(std::move(results));
}

Expected<Atom> packed_result(Builder& builder, Atom value, size_t index, size_t count) {
  if (count == 1) return value;
  return builder.project(value, static_cast<uint32_t>(index));
}

std::vector<VarId> values_used_outside(const Block& block, const std::vector<size_t>& bindings) {
  std::map<VarId, uint32_t> outside;
  for (const size_t binding : bindings) outside[block.bindings[binding].var] = 0;
  const auto count = [&](const Atom& atom, uint32_t by) {
    const auto* var = std::get_if<VarId>(&atom);
    if (const auto found = var ? outside.find(*var) : outside.end(); found != outside.end()) found->second += by;
  };
  for_each_use(block, [&](const Atom& atom) { count(atom, 1); });
  for (const size_t binding : bindings) {
    for_each_operand(block.bindings[binding].value, [&](const Atom& atom) { count(atom, -1u); });
  }
  std::vector<VarId> vars;
  for (const size_t binding : bindings) {
    const VarId var = block.bindings[binding].var;
    if (outside[var] != 0) vars.push_back(var);
  }
  return vars;
}

Expected<Outlined> outline(Context& context, Module& module, const Function& function, const Block& block,
                           const std::vector<size_t>& bindings, std::vector<VarId> results) {
  Outlined outlined;
  outlined.results = std::move(results);
  std::vector<bool> inside(function.vars.size()), is_param(function.vars.size());
  for (const size_t binding : bindings) inside[index(block.bindings[binding].var)] = true;
  Builder builder(context, module, outlined.function);
  Copier copier(function, builder);
  const auto add_param = [&](VarId var) {
    is_param[index(var)] = true;
    outlined.args.push_back(var);
    copier.param(context, var);
    declare_dims(function, function.type(var), outlined.function);
  };
  for (const size_t binding : bindings) {
    for_each_operand(block.bindings[binding].value, [&](const Atom& atom) {
      const auto* var = std::get_if<VarId>(&atom);
      if (var && !inside[index(*var)] && !is_param[index(*var)]) add_param(*var);
    });
  }
  for (const size_t binding : bindings) {
    for (const Symbol dim : missing_dims(block.bindings[binding].value, outlined.function)) {
      if (std::ranges::find(outlined.function.dims, dim) != outlined.function.dims.end()) continue;
      const auto sized = param_of_size(context, function, dim);
      if (!sized)
        return error(
            fmt::format("it computes with the dim {}, which is not the size of an operand", context.name(dim)));
      add_param(*sized);
    }
  }
  for (const size_t binding : bindings) TENON_TRY(copier.copy(block.bindings[binding]));
  Atoms atoms;
  for (const VarId var : outlined.results) atoms.push_back(copier(var));
  TENON_TRY_ASSIGN(packed, packed_results(builder, std::move(atoms)));
  builder.finish(*packed);
  return outlined;
}

namespace {

// The step applied to each tensor of the value that has another layout.
Expected<Atom> transform(Builder& builder, Atom value, BoundaryLayouts layouts, Type type, std::string_view name,
                         FunctionRef<Expected<Atom>(Atom, const BoundaryLayout&, Type)> step) {
  const auto is_plain = [](const BoundaryLayout& layout) { return layout.stored == layout.plain; };
  if (std::ranges::all_of(layouts, is_plain)) return value;
  if (!type.tuple()) return step(value, layouts[0], type);
  const std::vector<Type> parts = type.parts();
  assert(parts.size() == layouts.size());
  Atoms fields;
  for (size_t i = 0; i < parts.size(); ++i) {
    TENON_TRY_ASSIGN(field, builder.project(value, static_cast<uint32_t>(i)));
    if (!is_plain(layouts[i])) {
      TENON_TRY_ASSIGN(transformed, step(*field, layouts[i], parts[i]));
      field = *transformed;
    }
    fields.push_back(*field);
  }
  return builder.tuple(std::move(fields), name);
}

}  // namespace

Expected<Atom> store_as(Context& context, Builder& builder, Atom atom, BoundaryLayouts layouts, Type type,
                        Symbol name) {
  return transform(builder, atom, layouts, type, context.name(name),
                   [&](Atom tensor, const BoundaryLayout& layout, Type) {
                     return builder.apply(ops::kLayoutTransform, {tensor},
                                          {{"from", layout.plain}, {"to", layout.stored}}, context.name(name));
                   });
}

Expected<Atom> restore_from(Context& context, Builder& builder, Atom atom, BoundaryLayouts layouts, Type type,
                            Symbol name) {
  return transform(builder, atom, layouts, type, context.name(name),
                   [&](Atom tensor, const BoundaryLayout& layout, Type plain) {
                     runtime::Attrs attrs{{"from", layout.stored}, {"to", layout.plain}};
                     const bool blocked = layout.stored.find_first_of("0123456789") != std::string::npos;
                     if (const auto at = layout.plain.find('C'); blocked && at != std::string::npos) {
                       if (const auto channels = plain.tensor()->dims[at].constant()) attrs["channels"] = *channels;
                     }
                     return builder.apply(ops::kLayoutTransform, {tensor}, std::move(attrs), context.name(name));
                   });
}

Expected<Function> with_boundary(Context& context, Module& module, const Function& region, const Boundary& boundary) {
  Function result;
  result.dims = region.dims;
  result.bounds = region.bounds;
  result.target = region.target;
  Builder builder(context, module, result);
  Copier copier(region, builder);
  const BoundaryLayouts params = boundary.params;
  BoundaryLayouts remaining = boundary.results;
  std::vector<Atom> stored;
  for (size_t i = 0; i < region.params.size(); ++i) {
    const VarInfo& info = region.info(region.params[i]);
    builder.at(info.span);
    // The stored type is the result type of the transform, which is inferred in a scratch function.
    Function scratch;
    Builder scratch_builder(context, module, scratch);
    TENON_TRY_ASSIGN(transformed, store_as(context, scratch_builder, scratch_builder.param(info.type, "x"),
                                           params.subspan(i, 1), info.type, info.name));
    TENON_TRY_ASSIGN(type, scratch_builder.type_of(*transformed));
    stored.push_back(builder.param(*type, context.name(info.name)));
  }
  for (size_t i = 0; i < region.params.size(); ++i) {
    const VarInfo& info = region.info(region.params[i]);
    builder.at(info.span);
    TENON_TRY_ASSIGN(plain, restore_from(context, builder, stored[i], params.subspan(i, 1), info.type, info.name));
    copier.define(region.params[i], *plain);
  }
  // outline() packs several results into a last tuple binding; a new tuple replaces it here.
  const auto* packed = region.body.bindings.empty() ? nullptr : std::get_if<Tuple>(&region.body.bindings.back().value);
  const Atoms plain_results = packed ? packed->fields : Atoms{region.body.result};
  for (const Binding& binding : region.body.bindings) {
    if (std::holds_alternative<Tuple>(binding.value)) continue;
    TENON_TRY(copier.copy(binding));
  }
  Atoms results;
  for (const Atom& plain : plain_results) {
    const auto* var = std::get_if<VarId>(&plain);
    assert(var);
    const VarInfo& info = region.info(*var);
    builder.at(info.span);
    const size_t tensors = info.type.parts().size();
    TENON_TRY_ASSIGN(atom, store_as(context, builder, copier(*var), remaining.first(tensors), info.type, info.name));
    remaining = remaining.subspan(tensors);
    results.push_back(*atom);
  }
  TENON_TRY_ASSIGN(atom, packed_results(builder, std::move(results)));
  builder.finish(*atom);
  return result;
}

}  // namespace tenon::compiler
