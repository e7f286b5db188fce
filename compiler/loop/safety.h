// Proof obligations of a loop function beyond verify(): errors that may still occur when it runs on arguments that fit
// its signature. The evaluator checks them for every element; native code checks none, so it must know before it runs
// which of them are proved.
#pragma once

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

struct UnprovenObligations {
  // The first unproven obligation of these: every index is inside its buffer or axis, every element is written before
  // it is read, the results are written completely. The evaluator reports a violation; native code would access memory
  // outside its buffers.
  std::optional<Diagnostic> program = std::nullopt;
  // The values of elements or sizes may cause an error, in the evaluator and in native code: a division by 0, a
  // computed index, a float out of an integer's range, lengths that do not fit.
  bool data = false;
  bool library = false;  // an external function is called

  bool none() const { return !program && !data && !library; }
};

// The unproven obligations of a function that verify() accepts.
UnprovenObligations unproven_obligations(TypeContext& context, const Function& function);

// An error where a size may be an element of a parameter, as lengths(b), outside of the parameter: steps of schedules
// keep such sizes where their indices are known to be inside.
Status sizes_are_inside(TypeContext& context, const Function& function);

}  // namespace tenon::compiler::loop
