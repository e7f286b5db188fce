// A region of the target as kernels: which operators share one, and the values that pass from one to the next.
#pragma once

#include <vector>

#include "compiler/machine/machine.h"
#include "compiler/partition/target.h"
#include "compiler/schedules/user_schedule.h"

namespace tenon::compiler::cuda {

// One kernel for the function's operators, bound to a GPU: its outermost nests are launches. `own`: a user's schedule,
// or nullptr; loops that it leaves are bound.
Expected<BoundStep> bound_step(Context& context, const Module& module, const Function& function, const Machine& machine,
                               const schedules::UserSchedule* own = nullptr);

// The region without calls of composites.
Expected<Function> inlined(Context& context, const Module& module, const Function& region);

// The steps of a region without calls. Elementwise operators on values of one shape join the step of the operator that
// they follow, if no other step reads what it computes; conversions to i32, transposes and reshapes join that of the
// contraction that reads them; every other operator is a step of its own. Steps pass on some values with channels
// innermost (channels_last.h). Errors: those of bound_step().
Expected<BoundKernels> steps_of(Context& context, const Module& module, const Function& region, const Machine& machine,
                                const std::vector<schedules::UserSchedule>& schedules = {});

}  // namespace tenon::compiler::cuda
