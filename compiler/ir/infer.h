// The typing rules: the type of a value from those of its operands.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/ir/solver.h"

namespace tenon::compiler {

// The rules over a solver, which they may add equations to. The types of variables are those in `function`; blocks
// inside a value count as inferred, so only their results are looked at.
class Rules {
 public:
  Rules(Context& context, const Module& module, const Function& function, Solver& solver)
      : context_(context), module_(module), function_(function), solver_(solver) {}

  Expected<Type> atom(const Atom& atom);
  // Nothing where the operands are not known far enough to say anything yet.
  Expected<std::optional<Type>> value(const Value& value);
  // Gives the pattern's variables their types: those of the parts of a `subject`.
  Status pattern(const MatchPattern& pattern, Type subject);
  // What calls since the beginning left open: an error that says which size or type no argument decides.
  Status decided();

 private:
  struct Visitor;
  struct Signature {
    std::vector<Type> params;
    Type result;
  };
  struct Open {
    Symbol callee, name;
    std::optional<Dim> dim;
    std::optional<Type> type;
  };
  Expected<Signature> instantiate(Symbol callee);
  Expected<Type> call(std::string_view name, const Signature& signature, const Atoms& args);
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

// The type of `value` in a function whose variables all have types.
Expected<Type> infer_value(Context& context, const Module& module, const Function& function, const Value& value);
Expected<Type> infer_atom(Context& context, const Module& module, const Function& function, const Atom& atom);

}  // namespace tenon::compiler
