#include "compiler/cli/training_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/frontend/onnx.h"
#include "compiler/passes/passes.h"
#include "runtime/native/functions.h"
#include "support/try.h"

namespace tenon::cli {

void TrainingStepOptions::declare(Options& options) {
  options.choice(step.loss, "--loss", {"cross_entropy", "mse"}, "loss of the model's first result");
  std::vector<std::string> names;
  for (const compiler::OptimizerRecord& record : compiler::optimizers()) names.emplace_back(record.name);
  options.option(step.optimizer, "--optimizer", "NAME|FILE.tn",
                 fmt::format("how weights change: {}; or a file with @update[n](w, g, states..., rate, step) -> (w, "
                             "states...) on vectors of f32",
                             fmt::join(names, ", ")));
  options.option(step.numbers.momentum, "--momentum", "M", "of momentum and nesterov", {0, 1});
  options.option(step.numbers.decay, "--decay", "D", "decay of weights", {.least = 0});
  options.option(step.clip, "--clip", "NORM", "largest norm of all gradients together; 0: any", {.least = 0});
  options.option(batch, "--batch", "N", "samples in a step, where the model has an unknown first size", {1, 1 << 20});
  options.option(
      step.parts, "--accumulate", "K",
      "a step has K times as many samples, which are computed in K parts: the memory of one, the gradient of "
      "all",
      {1, 1024});
  options.option(shapes, "--shapes", "NAME=SIZE,...", "values of the model's other unknown sizes");
  options.repeated(frozen, "--freeze", "NAME", "a weight that keeps its value; may be repeated");
}

Expected<std::map<std::string, int64_t>> sizes_of_batch(const compiler::Model& model, const std::string& shapes,
                                                        int64_t& batch) {
  std::map<std::string, int64_t> sizes;
  for (const compiler::VarId param : model.main().params) {
    const compiler::TensorType* tensor = model.main().type(param).tensor();
    if (!tensor || tensor->dims.empty()) continue;
    if (const auto size = tensor->dims[0].constant()) {
      batch = *size;
      continue;
    }
    compiler::for_each_variable(tensor->dims[0], [&](compiler::Symbol name) {
      sizes.insert_or_assign(std::string(model.context->name(name)), batch);
    });
  }
  TENON_TRY_ASSIGN(given, compiler::parse_shapes(shapes));
  for (const auto& [name, size] : *given) sizes.insert_or_assign(name, size);
  return sizes;
}

Expected<compiler::Compilation> compile_for_this_machine(compiler::Model& model, compiler::CompileOptions options) {
  TENON_TRY_ASSIGN(simplified,
                   compiler::run_passes(*model.context, std::move(model.module), compiler::standard_passes()));
  model.module = std::move(*simplified);
  if (const auto levels = runtime::host_levels(); !levels.empty()) options.cpu.levels.emplace_back(levels.front());
  return compiler::compile(model, options);
}

}  // namespace tenon::cli
