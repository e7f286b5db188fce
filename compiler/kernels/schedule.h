// The schedule of a kernel without a search: what is written plainly becomes vectors, and threads where there is work
// for them. Contractions bring their loops along (tiles.h).
#pragma once

#include <string>
#include <vector>

#include "compiler/loop/loop.h"

namespace tenon::compiler::kernels {

struct Scheduled {
  loop::Function function;
  std::vector<std::string> steps;  // of compiler/loop/schedule, as they were taken
};

// The function computes what it did; a step that is refused is left out.
Scheduled schedule(TypeContext& context, loop::Function function);

}  // namespace tenon::compiler::kernels
