// The instantiation of a polymorphic callee at a call.
#pragma once

#include <map>
#include <optional>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// The sizes and types of the caller that the callee's dims and type variables stand for.
struct Instantiation {
  std::map<Symbol, Dim> dims;
  std::map<Symbol, Type> types;
  bool bounds_hold = true;  // whether the callee's bounds of its dims are proved, which the call checks otherwise
};
// Infers them from the types of the arguments; std::nullopt where they are not determined.
std::optional<Instantiation> instantiate(Context& context, const Module& module, const Function& caller,
                                         const Function& callee, const Call& call);

}  // namespace tenon::compiler
