// Effects: what the evaluation of a binding may do besides computing its value.
#pragma once

#include <map>

#include "compiler/ir/module.h"

namespace tenon::compiler {

enum class Effect : uint8_t {
  kNone,   // no effect: the binding may move along data edges and is removed when it is unused
  kCheck,  // the evaluation may stop the program, or may not terminate: the binding stays in its arm
  kState,  // creates, reads or writes a reference, or calls an unknown function: bindings of this effect keep their
           // order
};

// The effects of a module's functions, inferred bottom-up over the calls. A call of a closure may have any effect.
class Effects {
 public:
  Effects(Context& context, const Module& module);  // the module must outlive the object

  // The effect of a value or block of a function of the module, whose constants and library functions must not have
  // changed since the construction.
  Effect of(const Function& function, const Value& value) const;
  Effect of(const Function& function, const Block& block) const;
  Effect of_function(Symbol name) const;
  // Adds a function that was made since the construction, with its effect.
  void add(Symbol name, Effect effect) { functions_[name] = effect; }

 private:
  const Module& module_;
  std::map<Symbol, Effect> functions_;
};

}  // namespace tenon::compiler
