// The accelerator's back end: region -> tile program -> tokens -> encoding.
#pragma once

#include "compiler/backends/accel/layer.h"
#include "compiler/backends/accel/schedule.h"
#include "hw/spec/config.h"
#include "hw/spec/memory_timing.h"
#include "runtime/accelerator_program.h"
#include "support/diagnostic.h"

namespace tenon::compiler::accel {

struct ScheduleOptions {
  spec::MemoryTiming memory = {};     // affects the schedule alone
  Fusing fusing = Fusing::kCheapest;  // values between fused layers are no probes
};

// Compiles a region for one configuration. Boundary tensors have the shapes of boundary_shape() in the layout of
// boundary_layout(); tensors between layers are in the workspace, and those that no later one overwrites are listed as
// probes, for comparison layer by layer. The result depends on the arguments alone.
Expected<runtime::AcceleratorProgram> compile(const spec::Config& config, const Region& region,
                                              const ScheduleOptions& options = {});
// By these steps, which have each layer once, in order, with tilings that fit.
Expected<runtime::AcceleratorProgram> compile(const spec::Config& config, const Region& region,
                                              std::span<const Step> steps, const ScheduleOptions& options = {});

}  // namespace tenon::compiler::accel
