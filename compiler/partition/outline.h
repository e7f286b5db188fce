// Outlining: turns some bindings of a block into a function of their own, with layouts at its boundary: for
// partitioning, and for the units of batches.
#pragma once

#include <cassert>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/partition/target.h"
#include "support/try.h"

namespace tenon::compiler {

// BASE_i, which no global of the module is named.
Symbol fresh_global(Context& context, const Module& module, std::string_view base);

// Some bindings of a block as a function of their own.
struct Outlined {
  Function function;
  std::vector<VarId> args;     // the variables of the original that its parameters stand for
  std::vector<VarId> results;  // the variables of the original that its results stand for, ascending by binding
};

// Copies bindings from one function to another that a Builder makes, and maps each variable to its copy.
class Copier {
 public:
  Copier(const Function& from, Builder& to) : from_(from), to_(to), atoms_(from.vars.size()) {}

  void define(VarId var, Atom atom) { atoms_[index(var)] = atom; }
  Atom operator()(const Atom& atom) const {
    const auto* var = std::get_if<VarId>(&atom);
    assert(!var || atoms_[index(*var)]);
    return var ? *atoms_[index(*var)] : atom;
  }
  // Declares the parameter in the copy.
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

// The results of a function as its one result: a single one itself, several as a tuple; and one of `count` results of
// such a value.
Expected<Atom> packed_results(Builder& builder, Atoms results);
Expected<Atom> packed_result(Builder& builder, Atom value, size_t index, size_t count);

// The values of some bindings of the block that are used outside of them, by inner blocks too.
std::vector<VarId> values_used_outside(const Block& block, const std::vector<size_t>& bindings);

// Bindings of a block of the function as a function; `results` are its values that are used outside of it. For a dim
// that a binding computes with and that is not in the size of an operand, a parameter of the function is a parameter of
// the new one too, and only its size is read. An error where the function has none of this size.
Expected<Outlined> outline(Context& context, Module& module, const Function& function, const Block& block,
                           const std::vector<size_t>& bindings, std::vector<VarId> results);

// A value transformed to a boundary's layout, and back; `type` is the type of the plain value. A tuple has a layout for
// each field.
using BoundaryLayouts = std::span<const BoundaryLayout>;
Expected<Atom> store_as(Context& context, Builder& builder, Atom atom, BoundaryLayouts layouts, Type type, Symbol name);
Expected<Atom> restore_from(Context& context, Builder& builder, Atom atom, BoundaryLayouts layouts, Type type,
                            Symbol name);

// The region with parameters and results in their stored layouts.
Expected<Function> with_boundary(Context& context, Module& module, const Function& region, const Boundary& boundary);

}  // namespace tenon::compiler
