// What depends on what: functions on the functions that they call, and the bindings of one block on each other, whose
// order a pass keeps that groups or moves them.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "compiler/ir/effects.h"
#include "support/function_ref.h"

namespace tenon::compiler {

// The globals that a function calls or names.
std::set<Symbol> callees(const Function& function);
// The global and those that it depends on, in the order of a breadth-first search.
std::vector<Symbol> reachable_globals(const Module& module, Symbol from);

// By index of the binding in its block.
struct Dependencies {
  // The bindings of the block whose values it reads, in its inner blocks too; ascending and distinct.
  std::vector<std::vector<uint32_t>> reads;
  // These, and the bindings that it follows without reading their values. Bindings with an effect keep their order,
  // except that operators that may fail keep their order only relative to bindings with other effects. A binding that
  // may use the dims of a match_cast stays after it; an application without dims of its own that uses them has an
  // operand that does.
  std::vector<std::vector<uint32_t>> follows;
};
// `effect_of`: the effect of a binding's value.
Dependencies dependencies(FunctionRef<Effect(const Value&)> effect_of, const Block& block);

}  // namespace tenon::compiler
