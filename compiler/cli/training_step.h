// The training step of a model as the commands give it: options, sizes of a batch, and the compiled step.
#pragma once

#include <map>
#include <string>

#include "compiler/cli/command.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/train/step.h"

namespace tenon::cli {

struct TrainingStepOptions {
  compiler::StepOptions step;
  int64_t batch = 32;
  std::string shapes;
  std::vector<std::string> frozen;

  void declare(Options& options);
  int64_t samples_of_step() const { return batch * step.parts; }
};

// The sizes of the model's inputs for a batch: the first size of each that is not known, and those of --shapes. Where
// the model has a constant first size, `batch` becomes it.
Expected<std::map<std::string, int64_t>> sizes_of_batch(const compiler::Model& model, const std::string& shapes,
                                                        int64_t& batch);

// Native code for this machine alone; the standard passes come first.
Expected<compiler::Compilation> compile_for_this_machine(compiler::Model& model, compiler::CompileOptions options);

}  // namespace tenon::cli
