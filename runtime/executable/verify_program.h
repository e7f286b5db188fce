// What an accelerator program must keep to, so that it can be run without trust: its instructions decode, and every
// transfer stays inside the buffer of its base register. The second is the runtime's duty because the hardware sees
// physical addresses: on a board without an IOMMU nothing else stands between a hostile program and all of memory.
#pragma once

#include <string_view>

#include "runtime/accelerator_program.h"
#include "support/diagnostic.h"

namespace tenon::runtime {

Status verify_program(const AcceleratorProgram& program, std::string_view where);

}  // namespace tenon::runtime
