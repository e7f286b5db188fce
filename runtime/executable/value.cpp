#include "runtime/executable/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tenon::runtime {

ValueObject::~ValueObject() {
  // An object without other owners moves its fields to this list before it is destroyed.
  std::vector<Value> open = std::move(fields);
  while (!open.empty()) {
    const Value value = std::move(open.back());
    open.pop_back();
    if (!value.object || value.object.use_count() != 1) continue;
    for (Value& field : value.object->fields) open.push_back(std::move(field));
    value.object->fields.clear();
  }
}

Value::Value(Tensor tensor) : object(std::make_shared<ValueObject>()) { object->tensor = std::move(tensor); }

Value Value::tuple(std::vector<Value> fields) { return data(kTupleType, 0, std::move(fields)); }

Value Value::data(uint32_t type, uint32_t constructor, std::vector<Value> fields) {
  Value value;
  value.object = std::make_shared<ValueObject>();
  value.object->kind = ValueObject::Kind::kData;
  value.object->type = type;
  value.object->constructor = constructor;
  value.object->fields = std::move(fields);
  return value;
}

const Tensor& Value::tensor() const {
  static const Tensor kNone;
  return object ? object->tensor : kNone;
}

std::span<const Value> Value::fields() const {
  if (!object) return {};
  return object->fields;
}

std::optional<ConstructorIndex> find_constructor(const Executable& executable, std::string_view name) {
  for (uint32_t type = 0; type < executable.types.size(); ++type) {
    const auto& constructors = executable.types[type].constructors;
    const auto found = std::ranges::find(constructors, name, &DataConstructor::name);
    if (found != constructors.end()) return ConstructorIndex{type, static_cast<uint32_t>(found - constructors.begin())};
  }
  return std::nullopt;
}

std::string describe(const Executable& executable, const Value& value) {
  if (!value) return "missing";
  const ValueObject& object = *value.object;
  switch (object.kind) {
    case ValueObject::Kind::kTensor:
      return object.tensor ? fmt::format("{} {}", name(object.tensor.dtype()), to_string(object.tensor.shape()))
                           : "missing";
    case ValueObject::Kind::kData: {
      if (object.type == kTupleType) return fmt::format("a tuple of {}", object.fields.size());
      const bool known = object.type < executable.types.size() &&
                         object.constructor < executable.types[object.type].constructors.size();
      return known ? fmt::format("{}{}", executable.types[object.type].constructors[object.constructor].name,
                                 object.fields.empty() ? "" : "(...)")
                   : "of an unknown type";
    }
    case ValueObject::Kind::kFunction: return "a function";
    case ValueObject::Kind::kReference: return "a reference";
  }
  return "";
}

ValueView<Value> view(const Executable& executable, const Value& value) {
  const ValueObject& object = *value.object;
  switch (object.kind) {
    case ValueObject::Kind::kTensor: return {.kind = ValueKind::kTensor, .tensor = &object.tensor};
    case ValueObject::Kind::kData: {
      if (object.type == kTupleType) return {.kind = ValueKind::kTuple, .fields = object.fields};
      const DataConstructor& constructor = executable.types[object.type].constructors[object.constructor];
      return {.kind = ValueKind::kData, .constructor = constructor.name, .fields = object.fields};
    }
    case ValueObject::Kind::kFunction: return {.kind = ValueKind::kFunction};
    case ValueObject::Kind::kReference: return {.kind = ValueKind::kReference, .fields = object.fields};
  }
  return {};
}

}  // namespace tenon::runtime
