// Making a function of some bindings of another. Internal to the partitioner.
#pragma once

#include <cassert>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/builder.h"

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
  Status copy(const Binding& binding) {
    Value value = binding.value;
    for_each_operand(value, [&](Atom& atom) { atom = (*this)(atom); });
    return bind(binding.var, std::move(value));
  }
  Status bind(VarId var, Value value) {
    const VarInfo& info = from_.info(var);
    to_.at(info.span);
    auto atom = to_.bind(std::move(value), info.name);
    if (!atom) return forward_error(atom);
    define(var, *atom);
    return {};
  }

 private:
  const Function& from_;
  Builder& to_;
  std::vector<std::optional<Atom>> atoms_;
};

// One result as it is, several as a tuple.
inline Expected<Atom> pack(Builder& builder, Atoms results) {
  if (results.size() == 1) return results[0];
  return builder.tuple(std::move(results));
}

}  // namespace tenon::compiler
