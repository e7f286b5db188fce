// Values while a module is interpreted.
//
// Semantics: a value is a handle to an object that does not change, but for references: a copy is the same value. The
// chain of a long list is freed without recursion. Cycles can only go through references; the interpreter cuts those
// that are left when it ends.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct RunObject;
struct Code;
using Sizes = DimValues;

struct RunValue {
  std::shared_ptr<RunObject> object;

  RunValue() = default;
  RunValue(runtime::Tensor tensor);  // NOLINT: a tensor is a value
  static RunValue tuple(std::vector<RunValue> fields);
  static RunValue data(Symbol constructor, std::vector<RunValue> fields);

  explicit operator bool() const { return object != nullptr; }
  // An empty one where the value is no tensor.
  const runtime::Tensor& tensor() const;
  // Of a tuple or a constructed value; none otherwise.
  std::span<const RunValue> fields() const;
};

struct RunObject {
  enum class Kind : uint8_t { kTensor, kTuple, kData, kClosure, kReference };

  Kind kind = Kind::kTensor;
  Symbol constructor{};  // kData
  runtime::Tensor tensor;
  std::vector<RunValue> fields;  // kClosure: what it captured; kReference: the one value
  const Code* code = nullptr;    // kClosure
  std::shared_ptr<const Sizes> sizes;

  RunObject() = default;
  RunObject(const RunObject&) = delete;
  RunObject& operator=(const RunObject&) = delete;
  ~RunObject();
};

// The sizes of tensors in `value`, and of fields of tuples, with what `type` says of them, where it has variables.
void pair_sizes(Type type, const RunValue& value, std::vector<std::pair<Dim, int64_t>>& pairs);
// Takes the variables that the equations decide, where they have no value yet.
void solve_sizes(const std::vector<std::pair<Dim, int64_t>>& equations, Sizes& sizes);
// Both.
void bind_sizes(Type type, const RunValue& value, Sizes& sizes);
// Whether the dim stands in a size of `type` that can be seen.
bool mentions(Type type, Symbol dim);
// "with n = 4, m = 2": of the variables in `type`; empty where it has none that are known.
std::string known_sizes(const Context& context, Type type, const Sizes& sizes);
// Whether `value` is a `type`, as far as can be seen at once: the fields of constructed values, the types of functions
// and sizes that have no value are not looked at.
bool matches(const Module& module, Type type, const RunValue& value, const Sizes& sizes);
// "Tensor[(2, 3), f32]", "Cons(...)"
std::string describe(const Context& context, const RunValue& value);

// The value for people, as the text form writes it: 3i64, (true, Cons([1, 2], Nil)). Of a large tensor and of a long
// list the beginning.
std::string str(const Context& context, const RunValue& value);

}  // namespace tenon::compiler
