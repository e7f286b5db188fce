// The control slice: what an instance computes at once, because its control flow depends on it.
//
// Semantics: a batch waits until all instances need a value. A condition, a match and a size are needed at once, and so
// is what they are computed from: backward from them, through calls, arms and operators on integers and booleans whose
// results are small. Operators on floats are worth a batch, so the slice ends at them: a condition on a float waits for
// the batch that computes it.
#pragma once

#include <map>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler::batch {

class ControlSlice {
 public:
  ControlSlice(Context& context, const Module& module);

  // Whether the variable of a function of the module is computed at once.
  bool contains(Symbol function, VarId var) const { return slice_.at(function)[index(var)]; }

 private:
  void needs(Symbol function, const Atom& atom);
  void visit(Symbol function, VarId var);
  void seed(Symbol name, const Function& function);

  const Module& module_;
  std::map<Symbol, std::vector<bool>> slice_;
  std::map<Symbol, std::vector<const Value*>> values_;  // by variable; nullptr: a parameter, or a part of a match
  struct CallSite {
    Symbol caller{};
    const Call* call = nullptr;
  };
  std::map<Symbol, std::vector<CallSite>> calls_;  // by callee
  std::vector<std::pair<Symbol, VarId>> open_;     // whose operands have not been visited
};

}  // namespace tenon::compiler::batch
