// Making functions of some bindings of another, with layouts at their border. Internal to the partitioner.
#pragma once

#include <cassert>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/partition/target.h"
#include "support/try.h"

namespace tenon::compiler {

// Some bindings of a function as a function of their own.
struct Outlined {
  Function function;
  std::vector<VarId> args;     // what its parameters are in the original
  std::vector<VarId> results;  // what its results are in the original, ascending by binding
};

// Copies bindings from one function to another that a Builder makes; knows what became of each variable.
class Copier {
 public:
  Copier(const Function& from, Builder& to) : from_(from), to_(to), atoms_(from.vars.size()) {}

  void define(VarId var, Atom atom) { atoms_[index(var)] = atom; }
  Atom operator()(const Atom& atom) const {
    const auto* var = std::get_if<VarId>(&atom);
    assert(!var || atoms_[index(*var)]);
    return var ? *atoms_[index(*var)] : atom;
  }
  // The same parameter in the copy.
  void param(const Context& context, VarId var) {
    const VarInfo& info = from_.info(var);
    to_.at(info.span);
    define(var, to_.param(info.type, context.name(info.name)));
  }
  Status copy(const Binding& binding) {
    Value value = binding.value;
    for_each_operand(value, [&](Atom& atom) { atom = (*this)(atom); });
    return bind(binding.var, std::move(value));
  }
  Status bind(VarId var, Value value) {
    const VarInfo& info = from_.info(var);
    to_.at(info.span);
    TENON_TRY_ASSIGN(atom, to_.bind(std::move(value), info.name));
    define(var, *atom);
    return {};
  }

 private:
  const Function& from_;
  Builder& to_;
  std::vector<std::optional<Atom>> atoms_;
};

// The bindings as a function; `results` are those of its values that are used elsewhere.
Expected<Outlined> outline(Context& context, Module& module, const Function& function,
                           const std::vector<size_t>& bindings, std::vector<VarId> results);

// A value in a border's layout, and back; `type` is that of the plain value.
Expected<Atom> store_as(Context& context, Builder& builder, Atom atom, const BorderLayout& layout, Symbol name);
Expected<Atom> restore_from(Context& context, Builder& builder, Atom atom, const BorderLayout& layout, Type type,
                            Symbol name);

// The region with parameters and results as they are stored.
Expected<Function> with_border(Context& context, Module& module, const Function& region, const Border& border);

}  // namespace tenon::compiler
