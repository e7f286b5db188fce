// The typing rules: the type of a value from the types of its operands.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/solver.h"

namespace tenon::compiler {

// An operand in a position that requires a type: an argument, a field of a constructor, the value of a write, or the
// result of a closure. At the end of the inference, Rules::fits() returns whether the operand needs a check.
struct Passed {
  static constexpr size_t kResult = SIZE_MAX;  // the result of the closure's body
  size_t operand = 0;                          // index among the arguments or fields
  Type wanted;
  std::string what;  // "@f: argument 0"
};
template <class V>
auto& passed_operand(V& value, const Passed& passed) {
  if (auto* lambda = std::get_if<Lambda>(&value)) return lambda->body[0].result;
  if (auto* write = std::get_if<WriteReference>(&value)) return write->value;
  if (auto* apply = std::get_if<Apply>(&value)) return apply->args[passed.operand];
  if (auto* construct = std::get_if<Construct>(&value)) return construct->fields[passed.operand];
  return call_of(value)->args[passed.operand];
}

// The typing rules over a solver, to which they may add equations. The types of variables are the types in `function`;
// blocks inside a value count as inferred, so the rules read only their results.
class Rules {
 public:
  Rules(Context& context, const Module& module, const Function& function, Solver& solver)
      : context_(context), module_(module), function_(function), solver_(solver) {}

  Expected<Type> atom(const Atom& atom);
  // The type of a value; std::nullopt where the types of the operands are not resolved far enough. Properties of the
  // operands that cannot be proved are appended to `passed`; without it, they are errors of the operators. `result` is
  // the type of the value as far as it is resolved; it may determine the operands of an operator that has a scheme.
  Expected<std::optional<Type>> value(const Value& value, std::vector<Passed>* passed = nullptr, Type result = {});
  // Whether an operand of type `found`, all types resolved, fits without a check; an error where it never fits or, with
  // `strict`, where only a check at run time can prove that it fits.
  Expected<bool> fits(const Passed& passed, Type found, bool strict);
  // The dims of the computed attributes; std::nullopt where the types of their operands are not resolved.
  Expected<std::optional<AttrDims>> computed_dims(const Apply& apply);
  // The types that the callee or constructor of `value` declares for its operands; empty where it declares none.
  std::vector<Type> declared_types(const Value& value);
  // Unifies the types of the pattern's variables with the types of the parts of a `subject`.
  Status pattern(const MatchPattern& pattern, Type subject);
  // The number of callees' variables that were instantiated with unknowns so far.
  size_t instantiated() const { return instances_.size(); }
  // An error where one of the variables instantiated in [from, to) is not determined, or is out of the bounds that the
  // callee declares.
  Status check_determined(size_t from, size_t to, bool strict);
  // The solutions of the variables in [from, to) that are explicit_type_params() of their callees.
  std::vector<Type> explicit_types(size_t from, size_t to);

 private:
  struct Visitor;
  struct Instance {
    Symbol callee, name;
    std::optional<Dim> dim;
    std::optional<Type> type;
    DimRange bounds;
    bool explicit_type = false;  // no parameter has this type variable
  };
  Expected<Signature> instantiate(Symbol callee, const std::vector<Type>& types);
  Expected<Type> call(std::string_view name, const Signature& signature, const Atoms& args,
                      std::vector<Passed>* passed);
  Status pass(Passed passed, Type found, std::vector<Passed>* passed_list);
  Status unify_scheme(const Apply& apply, std::vector<Type> types, Type result);
  Expected<std::vector<Type>> types_of(const Atoms& atoms);
  Expected<std::vector<Type>> field_types(const Module::ConstructorDecl& decl, const std::vector<Type>& types,
                                          size_t found);
  Status require_equal(std::string_view what, Type wanted, Type found);
  std::string text(Type type) { return context_.str(solver_.resolve(type)); }

  Context& context_;
  const Module& module_;
  const Function& function_;
  Solver& solver_;
  std::vector<Instance> instances_;
};

// The behaviour of the inference where it cannot prove that sizes are equal.
struct InferOptions {
  bool strict_shapes = false;  // an error instead of a match_cast
};

// The type of `value` in a function whose variables all have types. The requirements on its operands must be provable.
Expected<Type> infer_value(Context& context, const Module& module, const Function& function, const Value& value);
// infer_value for an operator whose unproven requirements on its arguments become checks before it.
Expected<Type> infer_checked(Context& context, const Module& module, const Function& function, const Apply& apply,
                             std::vector<Requirement>& required);
Expected<Type> infer_atom(Context& context, const Module& module, const Function& function, const Atom& atom);

}  // namespace tenon::compiler
