// The accelerator's back end: region -> tile program -> tokens -> encoding.
#pragma once

#include "compiler/backends/accel/layer.h"
#include "hw/spec/config.h"
#include "runtime/accelerator_program.h"
#include "support/diagnostic.h"

namespace tenon::compiler::accel {

struct CompileOptions {
  // Gives every tensor between layers a place of its own and lists it as a tap: for comparison layer by layer.
  bool keep_intermediates = false;
};

// Compiles a region for one configuration. Border tensors have the shapes of border_shape() in the layout of
// border_layout(); tensors between layers lie in the workspace. The result depends on the arguments alone.
Expected<runtime::AcceleratorProgram> compile(const spec::Config& config, const Region& region,
                                              const CompileOptions& options = {});

}  // namespace tenon::compiler::accel
