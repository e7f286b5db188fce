// The values of the interpreter: construction, destruction without recursion, comparison with types.
#include "compiler/ir/run_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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

namespace {

using SeenParts = std::set<std::pair<const TypeNode*, const RunObject*>>;

void pair_parts(Type type, const RunValue& value, std::vector<std::pair<Dim, int64_t>>& pairs, SeenParts& seen) {
  if (!type.node->variables) return;
  if (const TensorType* tensor = type.tensor()) {
    const auto& shape = value.tensor().shape();
    if (!value.tensor() || shape.size() != tensor->dims.size()) return;
    for (size_t i = 0; i < tensor->dims.size(); ++i) {
      if (!tensor->dims[i].constant() && !tensor->dims[i].erased()) pairs.emplace_back(tensor->dims[i], shape[i]);
    }
  } else if (const TupleType* tuple = type.tuple(); tuple && seen.emplace(type.node, value.object.get()).second) {
    const auto fields = value.fields();
    for (size_t i = 0; i < std::min(tuple->fields.size(), fields.size()); ++i) {
      pair_parts(tuple->fields[i], fields[i], pairs, seen);
    }
  }
}

}  // namespace

void pair_sizes(Type type, const RunValue& value, std::vector<std::pair<Dim, int64_t>>& pairs) {
  SeenParts seen;
  pair_parts(type, value, pairs, seen);
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
  bool found = false;
  for_each_part(type, [&](Type part) {
    if (!part.tensor()) return;
    for (Dim size : part.tensor()->dims) for_each_variable(size, [&](Symbol name) { found |= name == dim; });
  });
  return found;
}

std::string describe_sizes(const Context& context, Type type, const Sizes& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) {
    if (!mentions(type, name)) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "with " : ", ", context.name(name), size);
  }
  return text;
}

namespace {

// A part that a type and a value share is compared once.
class Matcher {
 public:
  Matcher(const Module& module, const Sizes& sizes) : module_(module), sizes_(sizes) {}

  bool matches(Type type, const RunValue& value) {
    if (!value) return false;
    const RunObject& object = *value.object;
    return std::visit([&](const auto& form) { return this->form(type, form, object); }, type.node->alternatives());
  }

 private:
  bool form(Type, const TensorType& x, const RunObject& object) const {
    if (!object.tensor || object.tensor.dtype() != x.dtype) return false;
    const auto& shape = object.tensor.shape();
    return std::ranges::equal(x.dims, shape,
                              [&](Dim dim, int64_t size) { return evaluate(dim, sizes_).value_or(size) == size; });
  }
  bool form(Type type, const TupleType& x, const RunObject& object) {
    if (object.kind != ObjectKind::kTuple) return false;
    if (!matched_.emplace(type.node, &object).second) return true;
    return std::ranges::equal(x.fields, object.fields,
                              [&](Type next, const RunValue& field) { return matches(next, field); });
  }
  static bool form(Type, const FunctionType&, const RunObject& object) { return object.kind == ObjectKind::kClosure; }
  bool form(Type, const AdtType& x, const RunObject& object) const {
    if (object.kind != ObjectKind::kData) return false;
    const auto decl = module_.constructor(object.constructor);
    return decl && decl->name == x.name;
  }
  static bool form(Type, const ReferenceType&, const RunObject& object) {
    return object.kind == ObjectKind::kReference;
  }
  static bool form(Type, const TypeVariable&, const RunObject&) { return true; }
  static bool form(Type, const UnknownType&, const RunObject&) { return false; }

  const Module& module_;
  const Sizes& sizes_;
  std::set<std::pair<const TypeNode*, const RunObject*>> matched_;
};

}  // namespace

bool matches(const Module& module, Type type, const RunValue& value, const Sizes& sizes) {
  return Matcher(module, sizes).matches(type, value);
}

std::string describe(const Context& context, const RunValue& value) {
  if (!value) return "nothing";
  switch (value.object->kind) {
    case ObjectKind::kTensor:
      return fmt::format("Tensor[{}, {}]", runtime::to_string(value.tensor().shape()),
                         runtime::name(value.tensor().dtype()));
    case ObjectKind::kTuple: {
      std::string text;
      for (const RunValue& field : value.fields()) {
        // A field that is a tuple itself is abbreviated: shared fields may make its text exponentially long.
        const bool nested = field && field.object->kind == ObjectKind::kTuple && !field.fields().empty();
        text += (text.empty() ? "" : ", ") + (nested ? "(...)" : describe(context, field));
      }
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
