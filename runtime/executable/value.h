// Values at the boundary of a session: what an executable takes and returns.
//
// Semantics: a value is a handle to an object that no session refers to. Constructed values name their type and
// constructor by index in Executable::types. Values that were one object in the run are one object here. A long list is
// freed without recursion; a cycle, which contains a reference, is not freed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executable/executable.h"
#include "runtime/value_view.h"

namespace tenon::runtime {

struct ValueObject;
struct Value {
  std::shared_ptr<ValueObject> object;

  Value() = default;
  Value(Tensor tensor);  // NOLINT: a tensor is a value
  static Value tuple(std::vector<Value> fields);
  static Value data(uint32_t type, uint32_t constructor, std::vector<Value> fields);

  explicit operator bool() const { return object != nullptr; }
  const Tensor& tensor() const;  // an empty tensor where the value is not a tensor
  std::span<const Value> fields() const;
};

struct ValueObject {
  enum class Kind : uint8_t { kTensor, kData, kFunction, kReference };

  Kind kind = Kind::kTensor;
  uint32_t type = kTupleType, constructor = 0;  // kData
  Tensor tensor;
  std::vector<Value> fields;  // kReference: its content; kFunction: none

  ValueObject() = default;
  ValueObject(const ValueObject&) = delete;
  ValueObject& operator=(const ValueObject&) = delete;
  ~ValueObject();
};

// A constructor of the executable's types by its name, which no other one has.
struct ConstructorIndex {
  uint32_t type = 0, constructor = 0;  // as in ValueObject
};
std::optional<ConstructorIndex> find_constructor(const Executable& executable, std::string_view name);

// "f32 (2, 3)", "Cons(...)", "a function"
std::string describe(const Executable& executable, const Value& value);
// One level of the value, for the writers of runtime/value_view.h.
ValueView<Value> view(const Executable& executable, const Value& value);

}  // namespace tenon::runtime
