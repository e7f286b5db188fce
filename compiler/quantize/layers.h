// The layers that quantization turns into integers: chains; additions, averages, concatenations, and products of two
// activations, which stand alone.
#pragma once

#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct Layer {
  Symbol function{};
  VarId root{};                 // its result
  std::vector<VarId> operands;  // of a chain: its input and its residual
  std::vector<VarId> members;   // the results of its operators
  std::string name;             // of its first operator's node; of its result where that has no node
};

// The layers of the entry and of all functions that it depends on, in their order; operands of layers that no sample
// reached are among them.
std::vector<Layer> find_layers(const Context& context, const Module& module, Symbol entry);

// A set of layers, by function and root.
using LayerSet = std::set<std::pair<Symbol, VarId>>;

// The layers that the names stand for: names of nodes of the model's file, or of results of operators. An operator
// inside a chain stands for the chain, one that is no layer for nothing. A name that no operator has is an error with a
// similar one.
Expected<LayerSet> layers_named(const Context& context, const Module& module, Symbol entry,
                                std::span<const std::string> names);

}  // namespace tenon::compiler
