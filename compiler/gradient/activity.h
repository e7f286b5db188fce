// Activity: which variables of a function depend on the parameters that it is differentiated by.
#pragma once

#include <map>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler::gradient {

// The activity of functions of a module, across calls. A value is active if it depends on an active parameter through
// data, whatever operators do with it, and has a part of floats; a closure is active if such a value may be read from
// it. A reference to floats, and what has one as a part, is always active: what is written to it later is not known.
class Activity {
 public:
  // The module may get more functions, but its functions must not change.
  Activity(Context& context, const Module& module) : context_(context), module_(module) {}

  // By variable of the function, whose active parameters are `params`.
  std::vector<bool> variables(Symbol function, const std::vector<bool>& params);

 private:
  using Key = std::pair<Symbol, std::vector<bool>>;
  class Walk;
  bool result(Symbol function, const std::vector<bool>& params);

  Context& context_;
  const Module& module_;
  std::map<Key, bool> results_;  // whether the result is active, as far as it is known
  bool changed_ = false;
};

}  // namespace tenon::compiler::gradient
