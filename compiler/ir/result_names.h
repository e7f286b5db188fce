// The user-visible names of a function's results.
#pragma once

#include <vector>

#include "compiler/ir/builder.h"

namespace tenon::compiler {

// By variable: whether the variable is the result of the function, or a field of the result's tuple, and has a name.
std::vector<bool> named_results(const Context& context, const Function& function);

// Keeps these names while a pass builds a function anew, with the same parameters.
class ResultNames {
 public:
  explicit ResultNames(const Context& context, const Function& from)
      : results_(named_results(context, from)), user_visible_(from.params.size(), true) {}

  bool contains(VarId old) const { return results_[index(old)]; }
  // The atom that replaces a named result: it gets the name of the result, because users refer to it by name. An atom
  // that is user-visible under another name, as a parameter is, is copied under the name of the result.
  Expected<Atom> keep(Builder& builder, Atom atom, const VarInfo& info);

 private:
  std::vector<bool> results_;       // by variable of the old function: a named result
  std::vector<bool> user_visible_;  // by variable of the new function: users refer to it by its name
};

}  // namespace tenon::compiler
