// The options of an executable that is made to be run later, or elsewhere: of `tenon compile` and of the C interface.
#pragma once

#include <string>
#include <vector>

#include "compiler/cli/model_options.h"

namespace tenon::cli {

struct ExecutableOptions {
  std::string config = "default", budget;
  std::vector<std::string> shared;
  bool cpu = false, batch = false;

  // With --target and --levels, which are the model's.
  void declare(Options& options, ModelOptions& model);
  // Checks these options, before any work, and writes what they ask for into the model's.
  Status apply(ModelOptions& model) const;
  // None: everything is on the CPU.
  Expected<std::vector<compiler::AcceleratorOptions>> accelerators() const;
};

}  // namespace tenon::cli
