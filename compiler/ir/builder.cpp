// The builder: bindings with inferred types, and the stack of open blocks.
#include "compiler/ir/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "support/try.h"

namespace tenon::compiler {
Atom Builder::param(Type type, std::string_view name) {
  const auto id = static_cast<VarId>(function_.vars.size());
  function_.vars.push_back({type, context_.symbol(name), span_});
  function_.params.push_back(id);
  return id;
}

VarId Builder::declare(Type type, std::string_view name) {
  const auto id = static_cast<VarId>(function_.vars.size());
  function_.vars.push_back({type, context_.symbol(name), span_});
  return id;
}

Block Builder::close(Atom result) {
  Block block = std::move(open_.back());
  open_.pop_back();
  block.result = result;
  return block;
}

void Builder::append(VarId var, Value value) {
  auto& bindings = current().bindings;
  if (positions_.size() <= index(var)) positions_.resize(function_.vars.size());
  positions_[index(var)] = {static_cast<uint32_t>(open_.size()), static_cast<uint32_t>(bindings.size())};
  bindings.push_back({var, std::move(value)});
}

void Builder::rollback(const Checkpoint& checkpoint) {
  assert(checkpoint.open <= open_.size() && checkpoint.vars <= function_.vars.size());
  open_.resize(checkpoint.open);
  auto& bindings = current().bindings;
  assert(checkpoint.bindings <= bindings.size());
  bindings.erase(bindings.begin() + static_cast<ptrdiff_t>(checkpoint.bindings), bindings.end());
  function_.vars.resize(checkpoint.vars);
  positions_.resize(std::min(positions_.size(), checkpoint.vars));
}

void Builder::remove_last() {
  auto& bindings = current().bindings;
  assert(!bindings.empty() && index(bindings.back().var) + 1 == function_.vars.size());
  bindings.pop_back();
  function_.vars.pop_back();
  positions_.resize(std::min(positions_.size(), function_.vars.size()));
}

const Value* Builder::value_of(const Atom& atom) const {
  auto* var = std::get_if<VarId>(&atom);
  if (!var || index(*var) >= positions_.size()) return nullptr;
  const BindingPosition position = positions_[index(*var)];
  if (position.depth > open_.size()) return nullptr;
  const auto& bindings = (position.depth == 0 ? function_.body : open_[position.depth - 1]).bindings;
  return position.index < bindings.size() && bindings[position.index].var == *var ? &bindings[position.index].value
                                                                                  : nullptr;
}

const Apply* Builder::application(const Atom& atom) const {
  const Value* value = value_of(atom);
  return value ? std::get_if<Apply>(value) : nullptr;
}

const Apply* Builder::application(const Atom& atom, OperatorId op) const {
  const Apply* apply = application(atom);
  return apply && apply->op->is(op) ? apply : nullptr;
}

Expected<Atom> Builder::bind_to(VarId var, Value value) {
  Expected<Type> type = infer_value(context_, module_, function_, value);
  if (type && *type != function_.type(var)) {
    type = error(fmt::format("%{} is declared {}, but is {}", context_.name(function_.info(var).name),
                             context_.str(function_.type(var)), context_.str(*type)));
  }
  if (!type) {
    if (type.error().where.empty()) type.error().where = module_.span(span_).str();
    return std::unexpected(std::move(type.error()));
  }
  append(var, std::move(value));
  return var;
}

Expected<Type> Builder::checked(Apply& apply) {
  std::vector<Requirement> required;
  TENON_TRY_ASSIGN(type, infer_checked(context_, module_, function_, apply, required));
  for (const Requirement& next : required) {
    Atom& arg = apply.args[next.arg];
    TENON_TRY_ASSIGN(found, type_of(arg));
    Dims dims = found->tensor()->dims;
    dims[next.axis] = next.size;
    TENON_TRY_ASSIGN(cast, bind(Cast{arg, context_.tensor(std::move(dims), found->tensor()->dtype), {}}, Symbol{}));
    arg = *cast;
  }
  if (required.empty()) return type;
  required.clear();  // the sizes that are checked may be those of the result
  return infer_checked(context_, module_, function_, apply, required);
}

Expected<Atom> Builder::bind(Value value, Symbol name) {
  auto* apply = std::get_if<Apply>(&value);
  if (apply) settle_attributes(*apply);
  Expected<Type> type = apply ? checked(*apply) : infer_value(context_, module_, function_, value);
  if (!type) {
    if (type.error().where.empty()) type.error().where = module_.span(span_).str();
    return std::unexpected(std::move(type.error()));
  }
  const auto id = static_cast<VarId>(function_.vars.size());
  function_.vars.push_back({*type, name, span_});
  append(id, std::move(value));
  return id;
}

Expected<Atom> Builder::apply(std::string_view op, Atoms args, Attrs attrs, std::string_view name) {
  const Operator* record = context_.find_operator(op);
  if (!record) return error(fmt::format("there is no operator '{}'", op), module_.span(span_).str());
  return apply(*record, std::move(args), std::move(attrs), name);
}

Expected<Atom> Builder::apply(OperatorId op, Atoms args, Attrs attrs, std::string_view name, ComputedAttrs computed) {
  return apply(context_.op(op), std::move(args), std::move(attrs), name, std::move(computed));
}

Expected<Atom> Builder::apply(const Operator& op, Atoms args, Attrs attrs, std::string_view name,
                              ComputedAttrs computed) {
  std::vector<std::string_view> names;
  for (const auto& [attr, value] : computed) names.push_back(attr);
  Expected<Attrs> complete = complete_attrs(op, std::move(attrs), names);
  if (!complete) {
    complete.error().where = module_.span(span_).str();
    return std::unexpected(std::move(complete.error()));
  }
  return bind(Apply{&op, std::move(*complete), std::move(args), std::move(computed)}, context_.symbol(name));
}

Expected<Atom> Builder::dim_value(Dim dim) { return bind(DimValue{dim}, Symbol{}); }

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
