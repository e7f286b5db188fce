// An online partial evaluator over A-normal form: it runs what is known of a function and emits the remaining bindings.
//
// Semantics: bindings are emitted in the order in which the program evaluates them, and every operand is an atom, so no
// work is duplicated, and no effect moves or disappears, except reads of references whose content is known. A body is
// evaluated in place of a call (unfolded) where it is small, has a single call site, or gets an argument of which
// something is known: a constructor, a tuple, a closure, a function, a reference, a scalar constant. A recursive body
// is unfolded only where known data decide each branch on the way to the next call; otherwise, or when the fuel ends,
// all of it is undone and the call stays. Fuel is a number of evaluated bindings, linear in the size of the module:
// every module ends, and the result is linear in its size. (Jones, Gomard, Sestoft, "Partial evaluation and automatic
// program generation", 1993, chapters 5 and 7; the store of references follows the partial evaluator of Relay.)
#pragma once

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct PartialEvaluationLimits {
  size_t steps = 20;             // bindings evaluated in unfolded bodies, per binding of the function
  size_t base_steps = 4000;      // the same, for any function
  size_t unfolding_depth = 128;  // of calls inside unfolded bodies
  size_t copied_bindings = 8;    // of a body of which nothing is known, which is copied into each call
};

Expected<Module> partial_evaluate(Context& context, Module module, const PartialEvaluationLimits& limits = {});

}  // namespace tenon::compiler
