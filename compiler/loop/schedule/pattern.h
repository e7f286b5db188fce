// Analysis of how a loop function may be fused with its neighbours: the patterns that operators declare
// (compiler/ir/operator.h), derived from the indices at which the function reads and writes. Intermediate stages are
// inlined first, if possible, so that the pattern does not depend on how the work is divided into stages.
#pragma once

#include "compiler/base/op_pattern.h"
#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// kElementwise, kBroadcast, kInjective: each element of the results comes from one element of each operand that it
// reads. kAnchor: a contraction, that is, sums of products along indices that are in both factors; kReduction: any
// other sum, minimum or maximum; elementwise stages may follow either. kOpaque: scans, libraries, instructions,
// conditions on data around stages, and more than one reduction.
OpPattern pattern_of(TypeContext& context, const Function& function);

// The function with all stages inlined into their readers that can be.
Function without_inlined(TypeContext& context, Function function);

// Whether the function is scheduled: it has loop kinds other than serial, buffers not on the heap, or instructions.
bool has_schedule(const Function& function);

}  // namespace tenon::compiler::loop
