// The checks of an accelerator program that make it safe to run without trust: its instructions decode, and every
// transfer stays inside the buffer of its base register. The runtime checks transfers because the hardware sees
// physical addresses: on a board without an IOMMU nothing else protects memory from a hostile program.
#pragma once

#include <string_view>

#include "runtime/accelerator_program.h"
#include "support/diagnostic.h"

namespace tenon::runtime {

Status verify_program(const AcceleratorProgram& program, std::string_view where);

}  // namespace tenon::runtime
