// The values of the interpreter.
//
// Semantics: a value is a handle to an object; a copy refers to the same object. Objects are immutable except for
// references. A long list is freed without recursion. Cycles can only contain references; the interpreter breaks the
// remaining cycles when it ends.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "runtime/value_view.h"

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
  // An empty tensor where the value is not a tensor.
  const runtime::Tensor& tensor() const;
  // The fields of a tuple or a constructed value; empty for other values.
  std::span<const RunValue> fields() const;
};

struct RunObject {
  enum class Kind : uint8_t { kTensor, kTuple, kData, kClosure, kReference };

  Kind kind = Kind::kTensor;
  Symbol constructor{};  // kData
  runtime::Tensor tensor;
  std::vector<RunValue> fields;  // kClosure: the captured values; kReference: the single value
  const Code* code = nullptr;    // kClosure
  std::shared_ptr<const Sizes> sizes;

  RunObject() = default;
  RunObject(const RunObject&) = delete;
  RunObject& operator=(const RunObject&) = delete;
  ~RunObject();
};

// Appends the sizes of tensors in `value`, and in fields of tuples, with the dims of `type` that have variables.
void pair_sizes(Type type, const RunValue& value, std::vector<std::pair<Dim, int64_t>>& pairs);
// Adds the values of the variables that the equations determine, where they have no value yet.
void solve_sizes(const std::vector<std::pair<Dim, int64_t>>& equations, Sizes& sizes);
// pair_sizes followed by solve_sizes.
void bind_sizes(Type type, const RunValue& value, Sizes& sizes);
// Whether a size in `type` contains the dim variable.
bool mentions(Type type, Symbol dim);
// "with n = 4, m = 2": the values of the variables in `type`; empty where no variable of it has a value.
std::string describe_sizes(const Context& context, Type type, const Sizes& sizes);
// Whether `value` has the type `type`, by a shallow check: the fields of constructed values, the types of functions and
// sizes without a value are not checked.
bool matches(const Module& module, Type type, const RunValue& value, const Sizes& sizes);
// "Tensor[(2, 3), f32]", "Cons(...)"
std::string describe(const Context& context, const RunValue& value);

// The value for readers, in the syntax of the text form: 3i64, (true, Cons([1, 2], Nil)). A large tensor and a long
// list are abbreviated.
std::string str(const Context& context, const RunValue& value);
// One level of the value, for the writers of runtime/value_view.h.
runtime::ValueView<RunValue> view(const Context& context, const RunValue& value);

}  // namespace tenon::compiler
