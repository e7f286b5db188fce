// The signatures of globals.
#include <set>

#include "compiler/ir/module.h"

namespace tenon::compiler {
namespace {

// The sizes of the axes that are packed into one axis of a ragged buffer's tensor, independent of the names of indices.
Dims rows_of(Context& context, const loop::Buffer& buffer, size_t packed) {
  std::map<Symbol, Dim> index_dims;
  Dims rows;
  for (size_t axis = 0; axis < packed; ++axis) {
    rows.push_back(context.substitute(buffer.axes[axis].extent, index_dims));
    // The name cannot collide with a name from a text, since it contains a space.
    if (buffer.axes[axis].var != Symbol{})
      index_dims[buffer.axes[axis].var] = context.dim(context.symbol("axis " + std::to_string(axis)));
  }
  return rows;
}

Signature signature(Context& context, const loop::Function& function) {
  Signature signature;
  signature.dims = function.dims;
  signature.bounds = function.bounds;
  std::map<Dims, Dim> totals;  // the packed size, by the sizes of the rows
  std::set<Symbol> used(function.dims.begin(), function.dims.end());
  const auto type = [&](loop::BufferId id, bool param) {
    const loop::Buffer& buffer = function.buffer(id);
    const size_t packed = loop::packed_axes(buffer);
    Dims dims;
    if (packed > 0) {
      const Dims rows = rows_of(context, buffer, packed);
      auto found = totals.find(rows);
      if (found == totals.end() && param) {
        const Symbol total = context.fresh_dim(used);
        signature.dims.push_back(total);
        found = totals.emplace(rows, context.dim(total)).first;
      }
      dims.push_back(found == totals.end() ? context.erased() : found->second);
    }
    for (size_t axis = packed; axis < buffer.rank(); ++axis) dims.push_back(buffer.axes[axis].extent);
    return context.tensor(std::move(dims), buffer.dtype);
  };
  for (loop::BufferId param : function.params) signature.params.push_back(type(param, true));
  std::vector<Type> results;
  for (loop::BufferId result : function.results) results.push_back(type(result, false));
  signature.result = results.size() == 1 ? results[0] : context.tuple(std::move(results));
  return signature;
}
Signature signature(Context&, const Function& function) {
  Signature signature{function.dims, function.types, function.bounds, {}, function.result};
  for (VarId param : function.params) signature.params.push_back(function.type(param));
  return signature;
}
Signature signature(Context&, const Library& library) {
  return {library.dims, library.types, library.bounds, library.params, library.result};
}

}  // namespace

Signature signature_of(Context& context, const Global& global) {
  return std::visit([&](const auto& alternative) { return signature(context, alternative); }, global);
}

void collect_type_variables(Type type, std::set<Symbol>& names) {
  for_each_part(type, [&](Type part) {
    if (const TypeVariable* variable = part.variable()) names.insert(variable->name);
  });
}

std::vector<Symbol> explicit_type_params(const Signature& signature) {
  if (signature.types.empty()) return {};
  std::set<Symbol> determined;
  for (Type param : signature.params) collect_type_variables(param, determined);
  std::vector<Symbol> open;
  for (Symbol name : signature.types) {
    if (!determined.contains(name)) open.push_back(name);
  }
  return open;
}

}  // namespace tenon::compiler
