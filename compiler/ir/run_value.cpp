// The values of the interpreter: construction, destruction without recursion, comparison with types.
#include "compiler/ir/run_value.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::compiler {

using ObjectKind = RunObject::Kind;

RunObject::~RunObject() {
  // An object without other owners moves its fields to this list before it is destroyed.
  std::vector<RunValue> open = std::move(fields);
  while (!open.empty()) {
    RunValue value = std::move(open.back());
    open.pop_back();
    if (!value.object || value.object.use_count() != 1) continue;
    for (RunValue& field : value.object->fields) open.push_back(std::move(field));
    value.object->fields.clear();
  }
}

RunValue::RunValue(runtime::Tensor tensor) : object(std::make_shared<RunObject>()) {
  object->tensor = std::move(tensor);
}

RunValue RunValue::tuple(std::vector<RunValue> fields) {
  RunValue value;
  value.object = std::make_shared<RunObject>();
  value.object->kind = ObjectKind::kTuple;
  value.object->fields = std::move(fields);
  return value;
}

RunValue RunValue::data(Symbol constructor, std::vector<RunValue> fields) {
  RunValue value = tuple(std::move(fields));
  value.object->kind = ObjectKind::kData;
  value.object->constructor = constructor;
  return value;
}

const runtime::Tensor& RunValue::tensor() const {
  static const runtime::Tensor kNone;
  return object ? object->tensor : kNone;
}

std::span<const RunValue> RunValue::fields() const {
  if (!object || (object->kind != ObjectKind::kTuple && object->kind != ObjectKind::kData)) return {};
  return object->fields;
}

void pair_sizes(Type type, const RunValue& value, std::vector<std::pair<Dim, int64_t>>& pairs) {
  if (const TensorType* tensor = type.tensor()) {
    const auto& shape = value.tensor().shape();
    if (!value.tensor() || shape.size() != tensor->dims.size()) return;
    for (size_t i = 0; i < tensor->dims.size(); ++i) {
      if (!tensor->dims[i].constant() && !tensor->dims[i].erased()) pairs.emplace_back(tensor->dims[i], shape[i]);
    }
  } else if (const TupleType* tuple = type.tuple()) {
    const auto fields = value.fields();
    for (size_t i = 0; i < std::min(tuple->fields.size(), fields.size()); ++i) {
      pair_sizes(tuple->fields[i], fields[i], pairs);
    }
  }
}

void solve_sizes(const std::vector<std::pair<Dim, int64_t>>& equations, Sizes& sizes) {
  for (bool progress = true; progress;) {
    progress = false;
    for (const auto& [dim, value] : equations) progress |= solve_for_variable(dim, value, sizes);
  }
}

void bind_sizes(Type type, const RunValue& value, Sizes& sizes) {
  std::vector<std::pair<Dim, int64_t>> equations;
  pair_sizes(type, value, equations);
  solve_sizes(equations, sizes);
}

bool mentions(Type type, Symbol dim) {
  if (const TensorType* tensor = type.tensor()) {
    bool found = false;
    for (Dim size : tensor->dims) for_each_variable(size, [&](Symbol name) { found |= name == dim; });
    return found;
  }
  const TupleType* tuple = type.tuple();
  return tuple && std::ranges::any_of(tuple->fields, [&](Type field) { return mentions(field, dim); });
}

std::string describe_sizes(const Context& context, Type type, const Sizes& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) {
    if (!mentions(type, name)) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "with " : ", ", context.name(name), size);
  }
  return text;
}

bool matches(const Module& module, Type type, const RunValue& value, const Sizes& sizes) {
  struct Visitor {
    const Module& module;
    const RunObject& object;
    const Sizes& sizes;
    bool operator()(const TensorType& x) const {
      if (!object.tensor || object.tensor.dtype() != x.dtype) return false;
      const auto& shape = object.tensor.shape();
      return std::ranges::equal(x.dims, shape,
                                [&](Dim dim, int64_t size) { return evaluate(dim, sizes).value_or(size) == size; });
    }
    bool operator()(const TupleType& x) const {
      return object.kind == ObjectKind::kTuple &&
             std::ranges::equal(x.fields, object.fields,
                                [&](Type type, const RunValue& field) { return matches(module, type, field, sizes); });
    }
    bool operator()(const FunctionType&) const { return object.kind == ObjectKind::kClosure; }
    bool operator()(const AdtType& x) const {
      if (object.kind != ObjectKind::kData) return false;
      const auto decl = module.constructor(object.constructor);
      return decl && decl->name == x.name;
    }
    bool operator()(const ReferenceType&) const { return object.kind == ObjectKind::kReference; }
    bool operator()(const TypeVariable&) const { return true; }
    bool operator()(const UnknownType&) const { return false; }
  };
  return value && std::visit(Visitor{module, *value.object, sizes}, type.node->alternatives());
}

std::string describe(const Context& context, const RunValue& value) {
  if (!value) return "nothing";
  switch (value.object->kind) {
    case ObjectKind::kTensor:
      return fmt::format("Tensor[{}, {}]", runtime::to_string(value.tensor().shape()),
                         runtime::name(value.tensor().dtype()));
    case ObjectKind::kTuple: {
      std::string text;
      for (const RunValue& field : value.fields()) text += (text.empty() ? "" : ", ") + describe(context, field);
      return "(" + text + ")";
    }
    case ObjectKind::kData:
      return fmt::format("{}{}", context.name(value.object->constructor), value.fields().empty() ? "" : "(...)");
    case ObjectKind::kClosure: return "a function";
    case ObjectKind::kReference: return "a reference";
  }
  return "";
}

}  // namespace tenon::compiler
