// Liveness on the IR: the live range of each variable of a frame, found in one walk. From it the interpreter takes the
// bindings after which it empties slots (code.h), and the memory plan the live ranges of tensors (passes/memory.h).
//
// A frame is a call of a function or of a lambda. Positions are the frame's bindings in the order of the text, counted
// from 1, the arms of an If or a Case after it, one arm after another; position 0 is the frame's entry, where
// parameters and captured variables have their values. The body of a lambda is a frame of its own: in the frame that
// makes the closure, all that the body captures is read by the binding of the lambda.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct Liveness {
  // All by variable; variables of other frames have no meaningful entries.
  std::vector<uint32_t> first;  // where the variable is bound; a pattern's variables are bound by the Case
  std::vector<uint32_t>
      last_use;  // the last position that reads it, as operand or as the result of a block, or `first`
  // The uses without projections, which read one field of a tuple and not the tuple.
  std::vector<uint32_t> last_whole_use;
};

// Of a frame that executes `body`, which is the function's body or that of one of its lambdas.
Liveness find_liveness(const Function& function, const Block& body);

}  // namespace tenon::compiler
