// From operators to loop functions: one operator, or a group of them that the pass `fuse` or a partition made.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/kernels/emitter.h"

namespace tenon::compiler::kernels {

// Whether the operator has a lowering; it may still refuse types or attributes.
bool lowered(std::string_view op);

// The loop function of a straight line of operators, calls of loop functions, tuples and projections, with the loops of
// each stage as they are written: schedule.h makes them fast. Parameters are the group's arguments that are used, and
// its constants. `choices` knows what is good for an operator. An error where an operator has no lowering, or none for
// what it is given.
Expected<Kernel> make_kernel(Context& context, const Module& module, std::string_view name, const Function& group,
                             const Choices& choices = {});

}  // namespace tenon::compiler::kernels
