// Units: the straight-line work of a program as functions, each with its form for several instances.
//
// Semantics: in each block, the operators that wait for the same calls become one function with composite "unit", which
// is called where they stood. Work that depends on inputs and constants alone is so a unit of its own before the calls,
// and its batch joins all steps of a recursion. (Grain-size coarsening and hoisting, ACRoBat sections 4.2 and 5.1.)
// Where instances have different sizes, the operators whose rows are independent of each other, as of dense layers, are
// units apart from those that mix rows of an instance, as attention: calls of the former are one call on the rows of
// all instances (Function::joined_axes), and calls of the latter are joined where their sizes are equal. (Fused ragged
// loops over fused storage: Fegade et al., "The CoRa tensor compiler: compilation for ragged tensors with minimal
// padding", section 4.) What the control slice has, what all instances share, and operators whose sizes elements
// determine stay outside. The module computes the same, to the bit where the interpreter runs it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "support/diagnostic.h"

namespace tenon::compiler::batch {

struct Unit {
  Symbol name{};                       // of the function of one instance
  std::vector<bool> own;               // of its parameters; the others are shared by all of its calls
  std::optional<Symbol> batched = {};  // of the function of several instances
  std::vector<bool> own_results = {};  // of it, as Batched::own
  std::optional<Diagnostic> why = {};  // why there is none
  std::string note = {};               // for people: by what its calls are joined where sizes of instances differ
};

struct Units {
  Module module;  // with the functions of the units
  std::vector<Unit> units;
};

// Which parameters of the entry each instance has its own value of: those that are not named in `shared`. An error
// where a name is of no parameter.
Expected<std::vector<bool>> own_inputs(const Context& context, const Function& entry,
                                       const std::vector<std::string>& shared);

// `own`: the parameters of the entry that each instance has its own value of. Functions that the entry does not call
// have no units.
Units make_units(Context& context, Module module, Symbol entry, const std::vector<bool>& own);

// Makes the units, and their batched functions, functions as any others, whose operators get kernels. Their names.
std::vector<Symbol> release(Units& units);

// A line for each unit: its operators, and its parameters or why it is not batched.
std::string explain(const Context& context, const Units& units);

}  // namespace tenon::compiler::batch
