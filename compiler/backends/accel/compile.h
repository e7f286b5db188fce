// The accelerator's back end: region -> tile program -> tokens -> encoding.
#pragma once

#include "compiler/backends/accel/layer.h"
#include "hw/spec/config.h"
#include "hw/spec/memory_timing.h"
#include "runtime/accelerator_program.h"
#include "support/diagnostic.h"

namespace tenon::compiler::accel {

// Compiles a region for one configuration and a memory of this timing, which decides the schedule alone. Boundary
// tensors have the shapes of boundary_shape() in the layout of boundary_layout(); tensors between layers are in the
// workspace, and those that no later one overwrites are listed as probes, for comparison layer by layer. The result
// depends on the arguments alone.
Expected<runtime::AcceleratorProgram> compile(const spec::Config& config, const Region& region,
                                              const spec::MemoryTiming& memory = {});

}  // namespace tenon::compiler::accel
