#include "compiler/ir/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace tenon::compiler {
namespace {

// Binds the variables of `wanted` that `found` decides; shapes that cannot match are left to the comparison after it.
void bind_dims(Type wanted, Type found, const std::vector<Symbol>& variables, std::map<Symbol, Dim>& values) {
  if (const TensorType* a = wanted.tensor(), *b = found.tensor(); a && b && a->dims.size() == b->dims.size()) {
    for (size_t i = 0; i < a->dims.size(); ++i) {
      const auto variable = a->dims[i].variable();
      if (variable && std::ranges::find(variables, *variable) != variables.end()) values.emplace(*variable, b->dims[i]);
    }
  }
  if (const TupleType* a = wanted.tuple(), *b = found.tuple(); a && b && a->fields.size() == b->fields.size()) {
    for (size_t i = 0; i < a->fields.size(); ++i) bind_dims(a->fields[i], b->fields[i], variables, values);
  }
}

}  // namespace

Expected<Type> infer_call(Context& context, std::string_view name, const Function& callee, std::span<const Type> args) {
  if (args.size() != callee.params.size()) {
    return error(fmt::format("@{} takes {} arguments, found {}", name, callee.params.size(), args.size()));
  }
  std::map<Symbol, Dim> values;
  for (size_t i = 0; i < args.size(); ++i) bind_dims(callee.type(callee.params[i]), args[i], callee.dims, values);
  for (size_t i = 0; i < args.size(); ++i) {
    const Type wanted = callee.type(callee.params[i]);
    if (context.substitute(wanted, values) != args[i]) {
      return error(
          fmt::format("@{}: argument {} must be {}, found {}", name, i, context.str(wanted), context.str(args[i])));
    }
  }
  for (Symbol variable : callee.dims) {
    if (!values.contains(variable)) {
      return error(fmt::format("@{}: no argument decides its dim {}", name, context.name(variable)), "",
                   "give it a parameter that has this dim alone as a size");
    }
  }
  return context.substitute(callee.result, values);
}

Expected<Type> infer_atom(Context& context, const Module& module, const Function& function, const Atom& atom) {
  if (auto* var = std::get_if<VarId>(&atom)) return function.type(*var);
  if (auto* constant = std::get_if<ConstId>(&atom)) return context.type_of(module.constant(*constant));
  return error(
      fmt::format("@{} is a function, and functions are not values yet", context.name(std::get<Symbol>(atom))));
}

Expected<Type> infer_value(Context& context, const Module& module, const Function& function, const Value& value) {
  std::vector<Type> types;
  std::optional<Diagnostic> problem;
  for_each_operand(value, [&](const Atom& atom) {
    Expected<Type> type = infer_atom(context, module, function, atom);
    if (type) types.push_back(*type);
    else if (!problem) problem = type.error();
  });
  if (problem) return std::unexpected(*problem);
  struct Visitor {
    Context& context;
    const Module& module;
    std::vector<Type>& types;
    Expected<Type> operator()(const Apply& apply) { return infer_apply(context, *apply.op, apply.attrs, types); }
    Expected<Type> operator()(const Call& call) {
      auto* symbol = std::get_if<Symbol>(&call.callee);
      if (!symbol) return error("only a global function can be called yet");
      const Function* callee = module.function(*symbol);
      if (!callee) return error(fmt::format("there is no function @{}", context.name(*symbol)));
      return infer_call(context, context.name(*symbol), *callee, types);
    }
    Expected<Type> operator()(const Tuple&) { return context.tuple(types); }
    Expected<Type> operator()(const Project& project) {
      const TupleType* tuple = types[0].tuple();
      if (!tuple || project.index >= tuple->fields.size()) {
        return error(fmt::format("there is no field {} in {}", project.index, context.str(types[0])));
      }
      return tuple->fields[project.index];
    }
  };
  return std::visit(Visitor{context, module, types}, value);
}

Atom Builder::param(Type type, std::string_view name) {
  const auto id = static_cast<VarId>(function_.vars.size());
  function_.vars.push_back({type, context_.symbol(name), span_});
  function_.params.push_back(id);
  return id;
}

Expected<Atom> Builder::bind(Value value, Symbol name) {
  Expected<Type> type = infer_value(context_, module_, function_, value);
  if (!type) {
    if (type.error().where.empty()) type.error().where = module_.span(span_).str();
    return forward_error(type);
  }
  const auto id = static_cast<VarId>(function_.vars.size());
  function_.vars.push_back({*type, name, span_});
  function_.body.bindings.push_back({id, std::move(value)});
  return id;
}

Expected<Atom> Builder::apply(std::string_view op, Atoms args, Attrs attrs, std::string_view name) {
  const Operator* record = context_.find_operator(op);
  if (!record) return error(fmt::format("there is no operator '{}'", op), module_.span(span_).str());
  Expected<Attrs> complete = complete_attrs(*record, std::move(attrs));
  if (!complete) {
    complete.error().where = module_.span(span_).str();
    return forward_error(complete);
  }
  return bind(Apply{record, std::move(*complete), std::move(args)}, context_.symbol(name));
}

Expected<Atom> Builder::call(Symbol callee, Atoms args, std::string_view name) {
  return bind(Call{callee, std::move(args)}, context_.symbol(name));
}
Expected<Atom> Builder::tuple(Atoms fields, std::string_view name) {
  return bind(Tuple{std::move(fields)}, context_.symbol(name));
}
Expected<Atom> Builder::project(Atom tuple, uint32_t index, std::string_view name) {
  return bind(Project{tuple, index}, context_.symbol(name));
}

void Builder::finish(Atom result) {
  function_.body.result = result;
  Expected<Type> type = type_of(result);
  assert(type);
  function_.result = *type;
}

Expected<Type> Builder::type_of(const Atom& atom) const { return infer_atom(context_, module_, function_, atom); }

const TensorType* Builder::tensor_type(const Atom& atom) const {
  Expected<Type> type = type_of(atom);
  return type ? type->tensor() : nullptr;
}

}  // namespace tenon::compiler
