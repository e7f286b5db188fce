// Adjoints under construction: the derivatives that a backward pass has gathered for a value so far.
//
// An adjoint is absent until its first term, so no zeros are added; the fields of a tuple have adjoints of their own.
// The sizes of an adjoint's type may be less specific than those of its value; `materialize` checks them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "compiler/ir/builder.h"

namespace tenon::compiler::gradient {

struct Adjoint {
  std::optional<Atom> value;    // of a value that is no tuple
  std::vector<Adjoint> fields;  // of a tuple

  bool zero() const;
};

// The names of a module's dims, among which new ones are found.
class DimNames {
 public:
  explicit DimNames(const Module& module);
  Symbol fresh(Context& context);

 private:
  std::set<Symbol> used_;
  size_t next_ = 0;
};

// The type with a new dim in place of each visible `?`; `made` gets these dims.
Type with_named_sizes(Context& context, Type type, DimNames& dims, std::vector<Symbol>& made);

// The value with a name for each visible size that is `?`, by a match_cast.
Expected<Atom> opened(Builder& builder, const Atom& atom, DimNames& dims);

// The functions `@TAdjoint.add` that add adjoints of defined types, of which the module has one for each type.
class AdjointAdders {
 public:
  // The function that adds two adjoints of this type; appends it to the module unless it is there.
  Expected<Symbol> adder(Context& context, Module& module, Type type, DimNames& dims);

 private:
  static constexpr size_t kMaxNesting = 8;  // of instances of one type in each other

  std::map<Type, Symbol> adders_;
  std::map<Symbol, size_t> open_;  // how many adders of instances of a type are under construction
};

// Arithmetic on adjoints, appended to the builder's function.
class AdjointBuilder {
 public:
  AdjointBuilder(Builder& builder, AdjointAdders& adders, DimNames& dims)
      : builder_(builder), adders_(adders), dims_(dims) {}

  // The adjoint with the value `atom`, whose tuples are split into their fields.
  Expected<Adjoint> parts(const Atom& atom);
  // to += term
  Status add(Adjoint& to, const Adjoint& term);
  // The adjoint of a value `primal` of the type `type` as a value of the type D(type).
  Expected<Atom> materialize(const Adjoint& adjoint, Type type, const std::optional<Atom>& primal);
  // The value with its sizes checked to be those of `type`.
  Expected<Atom> cast(const Atom& atom, Type type);

 private:
  Expected<Atom> zero(Type type, const std::optional<Atom>& primal);
  Expected<Atom> sum(const Atom& a, const Atom& b);

  Builder& builder_;
  AdjointAdders& adders_;
  DimNames& dims_;
};

// The type with `?` for each visible size that is no constant.
Type erased(Context& context, Type type);

}  // namespace tenon::compiler::gradient
