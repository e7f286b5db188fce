// Concatenations that make a tensor longer in place, as a KV cache grows by a row in each step of a loop.
#pragma once

#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// By variable of the function: whether it is bound to a `concat` of two tensors whose first one is used no more and
// was made outside of this function's operators, so that its memory may have room for the second; its elements are the
// first in memory, since all axes before the concatenated one have size 1. Whether the memory has room, and
// has no other owner, is known in the run only (runtime/vm). The parameters of an entry are the caller's, so nothing
// grows there but in its closures, as the loops of ONNX are: `is_entry`.
std::vector<bool> growing_concats(const Function& function, bool is_entry);

}  // namespace tenon::compiler
