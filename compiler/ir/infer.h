// The typing rules: the type of a value from those of its operands.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/solver.h"

namespace tenon::compiler {

// An operand is passed where a type is wanted: an argument, a field of a constructor, what is written, the result of a
// closure. Rules::fits() says at the end whether a check is needed there.
struct Passed {
  static constexpr size_t kResult = SIZE_MAX;  // the result of the closure's body
  size_t operand = 0;                          // among arguments or fields
  Type wanted;
  std::string what;  // "@f: argument 0"
};
template <class V>
auto& passed_operand(V& value, const Passed& passed) {
  if (auto* lambda = std::get_if<Lambda>(&value)) return lambda->body[0].result;
  if (auto* write = std::get_if<WriteReference>(&value)) return write->value;
  if (auto* apply = std::get_if<Apply>(&value)) return apply->args[passed.operand];
  if (auto* construct = std::get_if<Construct>(&value)) return construct->fields[passed.operand];
  return std::get<Call>(value).args[passed.operand];
}

// The rules over a solver, which they may add equations to. The types of variables are those in `function`; blocks
// inside a value count as inferred, so only their results are looked at.
class Rules {
 public:
  Rules(Context& context, const Module& module, const Function& function, Solver& solver)
      : context_(context), module_(module), function_(function), solver_(solver) {}

  Expected<Type> atom(const Atom& atom);
  // Nothing where the operands are not known far enough to say anything yet. With `passed` what cannot be proved of the
  // operands goes there; without, operators make an error of it. `result`: what is known of the value's type; it may
  // decide the operands of an operator that has a scheme.
  Expected<std::optional<Type>> value(const Value& value, std::vector<Passed>* passed = nullptr, Type result = {});
  // Whether an operand as it is now, all types known, is fit to be passed; an error where it never is, or, with
  // `strict`, where only a check at run time can say.
  Expected<bool> fits(const Passed& passed, Type found, bool strict);
  // The types that the callee, constructor or reference of `value` states for its operands; nothing where it does not.
  std::vector<Type> stated(const Value& value);
  // Gives the pattern's variables their types: those of the parts of a `subject`.
  Status pattern(const MatchPattern& pattern, Type subject);
  // How many variables of callees were opened so far; what those from `from` to `to` left open is an error that says
  // which size or type nothing decides, or is out of the bounds that the callee declares.
  size_t opened() const { return opened_.size(); }
  Status decided(size_t from, size_t to, bool strict);
  // What those became that are types_to_give().
  std::vector<Type> given(size_t from, size_t to);

 private:
  struct Visitor;
  struct Open {
    Symbol callee, name;
    std::optional<Dim> dim;
    std::optional<Type> type;
    DimRange bounds;
    bool to_give = false;  // no parameter has this type
  };
  Expected<Signature> instantiate(Symbol callee, const std::vector<Type>& types);
  Expected<Type> call(std::string_view name, const Signature& signature, const Atoms& args,
                      std::vector<Passed>* passed);
  Status pass(Passed passed, Type found, std::vector<Passed>* all);
  Status unify_scheme(const Apply& apply, std::vector<Type> types, Type result);
  Expected<std::vector<Type>> types_of(const Atoms& atoms);
  Expected<std::vector<Type>> field_types(const Module::ConstructorPlace& place, const std::vector<Type>& types,
                                          size_t found);
  Status same(std::string_view what, Type wanted, Type found);
  std::string text(Type type) { return context_.str(solver_.resolve(type)); }

  Context& context_;
  const Module& module_;
  const Function& function_;
  Solver& solver_;
  std::vector<Open> opened_;
};

// How far inference goes where it cannot prove that sizes are equal.
struct InferOptions {
  bool strict_shapes = false;  // an error, instead of a match_cast
};

// The type of `value` in a function whose variables all have types; what it needs of its operands must be proved.
Expected<Type> infer_value(Context& context, const Module& module, const Function& function, const Value& value);
// As infer_value for an operator, where checks before it may make its arguments what it needs them to be.
Expected<Type> infer_checked(Context& context, const Module& module, const Function& function, const Apply& apply,
                             std::vector<Requirement>& required);
Expected<Type> infer_atom(Context& context, const Module& module, const Function& function, const Atom& atom);

}  // namespace tenon::compiler
