// How a loop function may be fused with its neighbours, from the indices at which it reads and writes: the kinds that
// operators state of themselves (compiler/ir/operator.h), seen in what the function does. Stages between are inlined
// first, where that can be, so that it does not matter how the work is divided.
#pragma once

#include "compiler/base/op_pattern.h"
#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// kElementwise, kBroadcast, kInjective: each element of the results comes from one element of each operand that it
// reads at all. kAnchor: a contraction, sums of products along indices that are in both factors; kReduction: any other
// sum, minimum or maximum; either may be followed by elements at the same places. kOpaque: scans, libraries,
// instructions, conditions on data around stages, and more than one reduction.
OpPattern pattern_of(TypeContext& context, const Function& function);

// The function without the stages that can be part of those that read them.
Function without_inlined(TypeContext& context, Function function);

// Whether somebody has said how it is to run: loops that are marked, buffers on the stack, instructions.
bool has_schedule(const Function& function);

}  // namespace tenon::compiler::loop
