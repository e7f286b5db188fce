// The builder of functions, binding by binding: it completes the attributes and infers the type of each binding, so a
// function from a Builder is well typed.
#pragma once

#include <initializer_list>
#include <string_view>

#include "compiler/ir/infer.h"
#include "compiler/ir/module.h"
#include "compiler/ir/operator.h"

namespace tenon::compiler {

class Builder {
 public:
  // Appends to `function`, which must not be part of a module yet; constants and spans are added to `module`.
  Builder(Context& context, Module& module, Function& function)
      : context_(context), module_(module), function_(function) {}

  // Sets the span of the bindings that follow.
  void at(SpanId span) { span_ = span; }
  SpanId span() const { return span_; }

  Atom param(Type type, std::string_view name);
  Atom constant(runtime::Tensor tensor) { return module_.add_constant(std::move(tensor)); }
  template <class T>
  Atom constant(runtime::Shape shape, const std::vector<T>& values) {
    return constant(runtime::Tensor::of<T>(std::move(shape), values));
  }

  // Errors have the location of the span.
  Expected<Atom> apply(const Operator& op, Atoms args, Attrs attrs = {}, std::string_view name = {},
                       ComputedAttrs computed = {});
  Expected<Atom> apply(OperatorId op, Atoms args, Attrs attrs = {}, std::string_view name = {},
                       ComputedAttrs computed = {});
  // By the name in a text: an error where no operator has it.
  Expected<Atom> apply(std::string_view op, Atoms args, Attrs attrs = {}, std::string_view name = {});
  Expected<Atom> dim_value(Dim dim);  // a scalar i64
  Expected<Atom> call(Symbol callee, Atoms args, std::string_view name = {});
  Expected<Atom> tuple(Atoms fields, std::string_view name = {});
  Expected<Atom> project(Atom tuple, uint32_t index, std::string_view name = {});
  // Binds any value, whose attributes must be complete. Where an operator requires sizes that cannot be proved, the
  // builder inserts match_casts of its arguments before it.
  Expected<Atom> bind(Value value, Symbol name);

  // Removes the last binding of the current block, whose variable is the function's last and has no use.
  void remove_last();

  // A state of the function, to which rollback() returns: everything declared, opened and bound since is discarded. The
  // block that was the current one must not have been closed in between.
  struct Checkpoint {
    size_t open = 0, bindings = 0, vars = 0;
  };
  Checkpoint checkpoint() const { return {open_.size(), current().bindings.size(), function_.vars.size()}; }
  void rollback(const Checkpoint& checkpoint);

  // Declares a variable before it is bound: a variable of a pattern, a parameter of a lambda, or a recursive lambda.
  VarId declare(Type type, std::string_view name);
  // Binds a declared variable; the value must have its type.
  Expected<Atom> bind_to(VarId var, Value value);

  // The bindings between open() and close() form a block of the If, Case or Lambda that is bound next.
  void open() { open_.emplace_back(); }
  Block close(Atom result);
  // Discards all open blocks, after an error.
  void abandon() { open_.clear(); }

  void finish(Atom result);  // sets the function's result and its type

  // The value that the atom is bound to, in the current block or in a block around it; nullptr where the atom is a
  // parameter, a variable of a pattern, a lambda that is not bound yet, or not a variable. The pointer is valid until
  // the next binding is appended.
  const Value* value_of(const Atom& atom) const;
  // The value of the atom where it is an application of any operator, or of the operator `op`; nullptr otherwise.
  const Apply* application(const Atom& atom) const;
  const Apply* application(const Atom& atom, OperatorId op) const;

  Expected<Type> type_of(const Atom& atom) const;         // an error for a polymorphic global: it is not a value
  const TensorType* tensor_type(const Atom& atom) const;  // nullptr where the atom is not a tensor

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
  struct BindingPosition {
    uint32_t depth = UINT32_MAX;  // 0: the function's body; otherwise the open block depth - 1
    uint32_t index = 0;           // in the bindings of the block
  };
  std::vector<BindingPosition> positions_;  // by variable, as far as they are bound
  void append(VarId var, Value value);
  Block& current() { return open_.empty() ? function_.body : open_.back(); }
  const Block& current() const { return open_.empty() ? function_.body : open_.back(); }
};

}  // namespace tenon::compiler
