// Builds functions binding by binding: attributes are completed and types inferred as each is made, so what a Builder
// has made is well typed.
#pragma once

#include <initializer_list>
#include <string_view>

#include "compiler/ir/infer.h"
#include "compiler/ir/module.h"
#include "compiler/ir/operator.h"

namespace tenon::compiler {

class Builder {
 public:
  // Appends to `function`, which is part of no module yet; constants and spans go into `module`.
  Builder(Context& context, Module& module, Function& function)
      : context_(context), module_(module), function_(function) {}

  // What is made from now on comes from there.
  void at(SpanId span) { span_ = span; }
  SpanId span() const { return span_; }

  Atom param(Type type, std::string_view name);
  Atom constant(runtime::Tensor tensor) { return module_.add_constant(std::move(tensor)); }
  template <class T>
  Atom constant(runtime::Shape shape, const std::vector<T>& values) {
    return constant(runtime::Tensor::of<T>(std::move(shape), values));
  }

  // Errors carry the span's place.
  Expected<Atom> apply(std::string_view op, Atoms args, Attrs attrs = {}, std::string_view name = {});
  Expected<Atom> call(Symbol callee, Atoms args, std::string_view name = {});
  Expected<Atom> tuple(Atoms fields, std::string_view name = {});
  Expected<Atom> project(Atom tuple, uint32_t index, std::string_view name = {});
  // Any value; its attributes must be complete. Where an operator needs sizes that cannot be proved, match_casts of its
  // arguments go before it.
  Expected<Atom> bind(Value value, Symbol name);

  // A variable before it is bound: of a pattern, a parameter of a lambda, or a lambda that its own body sees.
  VarId declare(Type type, std::string_view name);
  // Binds a declared variable; the value must have its type.
  Expected<Atom> bind_to(VarId var, Value value);

  // Bindings made between open() and close() form a block, for an If, a Case or a Lambda that is bound next.
  void open() { open_.emplace_back(); }
  Block close(Atom result);
  // Leaves all blocks that are open, after an error.
  void abandon() { open_.clear(); }

  void finish(Atom result);  // the function's result and its type

  // What binds the atom, in the block being made or in one around it; nullptr where it is a parameter, a part of a
  // pattern, a lambda that is not made yet, or no variable. Good until the next binding is made.
  const Value* value_of(const Atom& atom) const;
  // The same, where it is an application: of any operator, or of that one.
  const Apply* application(const Atom& atom) const;
  const Apply* application(const Atom& atom, std::string_view op) const;

  Expected<Type> type_of(const Atom& atom) const;         // an error for a polymorphic global: it is no value
  const TensorType* tensor_type(const Atom& atom) const;  // nullptr where it is no tensor

  Context& context() const { return context_; }
  Module& module() const { return module_; }
  Function& function() const { return function_; }

 private:
  Expected<Type> checked(Apply& apply);

  Context& context_;
  Module& module_;
  Function& function_;
  SpanId span_{};
  std::vector<Block> open_;
  struct Place {
    uint32_t depth = UINT32_MAX, index = 0;  // among the open blocks, the function's body first
  };
  std::vector<Place> places_;  // by variable, as far as they are bound
  void append(VarId var, Value value);
};

}  // namespace tenon::compiler
