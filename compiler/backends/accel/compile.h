// The accelerator's back end: region -> tile program -> tokens -> encoding.
#pragma once

#include "compiler/backends/accel/layer.h"
#include "hw/spec/config.h"
#include "runtime/accelerator_program.h"
#include "support/diagnostic.h"

namespace tenon::compiler::accel {

struct CompileOptions {
  // Allocates separate memory for every tensor between layers and lists it as a probe, for comparison layer by layer.
  bool keep_intermediates = false;
};

// Compiles a region for one configuration. Boundary tensors have the shapes of boundary_shape() in the layout of
// boundary_layout(); tensors between layers are in the workspace. The result depends on the arguments alone.
Expected<runtime::AcceleratorProgram> compile(const spec::Config& config, const Region& region,
                                              const CompileOptions& options = {});

}  // namespace tenon::compiler::accel
