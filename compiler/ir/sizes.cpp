#include "compiler/ir/sizes.h"

#include <algorithm>
#include <utility>

namespace tenon::compiler {

void visible_tensors(Type type, std::vector<const TensorType*>& tensors) {
  if (const TensorType* tensor = type.tensor()) tensors.push_back(tensor);
  if (const TupleType* tuple = type.tuple()) {
    for (const Type field : tuple->fields) visible_tensors(field, tensors);
  }
}

std::optional<SizeSolution> solve_next(Context& context, const std::vector<const TensorType*>& tensors,
                                       const std::set<Symbol>& open) {
  for (size_t t = 0; t < tensors.size(); ++t) {
    for (size_t axis = 0; axis < tensors[t]->dims.size(); ++axis) {
      const Dim dim = tensors[t]->dims[axis];
      if (dim.constant() || !dim.valid()) continue;
      std::set<Symbol> unknown;
      for_each_variable(dim, [&](Symbol name) {
        if (open.contains(name)) unknown.insert(name);
      });
      if (unknown.size() != 1) continue;
      const auto linear = context.linear_in(*unknown.begin(), dim);
      if (linear) return SizeSolution{*unknown.begin(), t, axis, linear->first, linear->second};
    }
  }
  return std::nullopt;
}

std::vector<Symbol> hidden_dims(Context& context, const Function& function) {
  std::vector<const TensorType*> tensors;
  for (const VarId param : function.params) visible_tensors(function.type(param), tensors);
  std::set<Symbol> open(function.dims.begin(), function.dims.end());
  while (const auto next = solve_next(context, tensors, open)) open.erase(next->dim);
  std::vector<Symbol> hidden;
  for (const Symbol dim : function.dims) {
    if (open.contains(dim)) hidden.push_back(dim);
  }
  return hidden;
}

void declare_dims(Context& context, Function& function) {
  const auto declare = [&](Dim dim) {
    if (dim.valid()) {
      for_each_variable(dim, [&](Symbol name) {
        if (std::ranges::find(function.dims, name) == function.dims.end()) function.dims.push_back(name);
      });
    }
    return dim;
  };
  for (const VarInfo& info : function.vars) context.map_sizes(info.type, declare);
  for (const Binding& binding : function.body.bindings) for_each_dim(binding.value, [&](Dim dim) { declare(dim); });
}

std::vector<VarId> add_size_params(Context& context, const Function& around, runtime::DTypes dtypes,
                                   Function& function) {
  std::vector<VarId> added;
  for (const VarId param : around.params) {
    const size_t hidden = hidden_dims(context, function).size();
    if (hidden == 0) break;
    const VarInfo& info = around.info(param);
    if (!info.type.tensor() || !dtypes.contains(info.type.tensor()->dtype)) continue;
    Function with = function;
    with.params.push_back(static_cast<VarId>(with.vars.size()));
    with.vars.push_back(info);
    declare_dims(context, with);
    if (hidden_dims(context, with).size() >= hidden) continue;
    function = std::move(with);
    added.push_back(param);
  }
  return added;
}

}  // namespace tenon::compiler
