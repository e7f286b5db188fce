// What may go wrong when a loop function runs on arguments that fit its signature: what verify() leaves to the
// evaluator, which looks at every element, and what native code must know before it runs, since it looks at none.
#pragma once

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

struct Doubts {
  // The first thing of these that could not be proved: an index is inside its buffer or axis, what is read was written,
  // the results are written whole. The evaluator finds it out; native code would read and write what is not there.
  std::optional<Diagnostic> program = std::nullopt;
  // Elements or sizes may have no result: a division by 0, a computed index, a float beyond an integer, lengths that do
  // not fit. An error wherever it runs.
  bool data = false;
  bool library = false;  // an outside function is called

  bool none() const { return !program && !data && !library; }
};

// Of a function that holds to verify().
Doubts doubts(TypeContext& context, const Function& function);

}  // namespace tenon::compiler::loop
