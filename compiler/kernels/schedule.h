// The default schedule of a kernel, without a search: plain loops are vectorized, and parallel where there is enough
// work for threads. Contractions are scheduled by templates before it.
#pragma once

#include <string>
#include <vector>

#include "compiler/loop/loop.h"
#include "compiler/schedules/user_schedule.h"

namespace tenon::compiler::kernels {

struct Scheduled {
  loop::Function function;
  std::vector<std::string> steps;  // of compiler/loop/schedule, in the order of their application
};

// Schedules a loop function of a module: by the steps of the user, or else by the default schedule, unless its loops
// have kinds already. The error of a step that is refused names its line.
Expected<Scheduled> schedule_loops(TypeContext& context, const loop::Function& function,
                                   const schedules::UserSchedule* own);

// Schedules the function without changing its results; a step that is rejected is skipped.
Scheduled schedule(TypeContext& context, loop::Function function);

}  // namespace tenon::compiler::kernels
