// Tapes: what a forward pass saves for the backward pass, in the fields of a generated data type.
//
// A tape's type has one constructor for each arm of a branch, or one for a function. The backward code of an arm is
// written as if it stood behind the forward code, in its scope; `save` then finds what it reads, and replaces these
// variables by those of a pattern that splits the tape into its fields. The fields of a constructor have `?` for each
// size that is no constant; the sizes are named again by match_casts. Sizes that no saved tensor has are saved as the
// shape of a tensor without elements.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "compiler/gradient/adjoints.h"

namespace tenon::compiler::gradient {

// The type of a tape with these constructors, whose fields are set when it is known what is saved.
struct TapeType {
  Type type;
  std::vector<Symbol> constructors;
};
// Declares the type; its name begins with `name` and is found among those of the module.
TapeType declare_tape(Context& context, Module& module, std::string_view name, size_t constructors);

// The end of a forward block: the values of the constructor's fields, and the bindings before them.
struct SavedFields {
  Atoms fields;
  std::vector<Binding> bindings;
};

// A value that the backward block receives beside the tape, under another type.
struct Received {
  VarId var;    // as which the block reads it
  Atom source;  // its value
};

struct SavedScope {
  const std::set<VarId>& vars;   // which the forward block defines
  const std::set<Symbol>& dims;  // which are in scope in the forward block alone
  Symbol constructor{};          // of the tape
  std::vector<Received> received = {};
};

// Makes `block`, which reads variables of the scope, a block behind the returned pattern; sets the fields of the
// constructor.
struct Saved {
  SavedFields forward;
  MatchPattern pattern;
};
Expected<Saved> save(Builder& builder, Block& block, const SavedScope& scope);

}  // namespace tenon::compiler::gradient
