// Lowers an operator, or a group of operators that the pass `fuse` or a partition formed, to a loop function.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/kernels/emitter.h"

namespace tenon::compiler::kernels {

// Whether the operator has a lowering, which may still reject types or attributes.
bool lowered(OperatorId op);
// The names by which a user's schedule may mean the kernel of a group: the value that it computes, and its operators.
std::vector<std::string> kernel_names(const Context& context, const Function& group);

// The loop function of a sequence of operators, calls of loop functions, tuples and projections. The loops of its
// stages are not scheduled yet (schedule.h), apart from the tiles of contractions, which fit the registers and caches
// of `machine`. Its parameters are the used arguments of the group, and its constants. The results are equal bit for
// bit for all machines, except that a machine may round a product and a sum at once. `knobs` returns the measured knob
// settings of an operator; `own`, which may be null, are steps of a user for the loops. An error where an operator has
// no lowering, or none for its types and attributes.
Expected<KernelFunction> make_kernel(Context& context, const Module& module, std::string_view name,
                                     const Function& group, const Machine& machine, const KnobLookup& knobs = {},
                                     const schedules::UserSchedule* own = nullptr);

}  // namespace tenon::compiler::kernels
