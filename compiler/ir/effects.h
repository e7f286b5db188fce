// What the evaluation of a binding may do besides giving its value.
#pragma once

#include <map>

#include "compiler/ir/module.h"

namespace tenon::compiler {

enum class Effect : uint8_t {
  kNone,   // nothing: it may move along data edges and go when unused
  kCheck,  // it may stop the program, or never end: it stays in its arm
  kState,  // it makes, reads or writes a reference, or calls what nobody knows: it keeps its place among these
};

// The effects of a module's functions, inferred from the calls inward; what calls a closure may do anything.
class Effects {
 public:
  Effects(Context& context, const Module& module);  // which outlives it

  // In a function of the module, whose constants and library functions are those that it had.
  Effect of(const Function& function, const Value& value) const;
  Effect of(const Function& function, const Block& block) const;
  Effect of_function(Symbol name) const;

 private:
  const Module& module_;
  std::map<Symbol, Effect> functions_;
};

}  // namespace tenon::compiler
