#include "compiler/cli/executable_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/backends/llvm/compile.h"
#include "compiler/cli/pass_options.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

// Before any work: whether there is such a machine.
Status check_target(const ModelOptions& model) {
  if (model.kernels == "reference" && !(model.target.empty() && model.levels.empty())) {
    return error("--target and --levels are about native code, and --kernels reference makes none", {},
                 "a file without native code runs on every machine", Fault::kUsage);
  }
  TENON_TRY_ASSIGN(supported, compiler::native::levels_of(model.target));
  for (const std::string& level : split(model.levels)) {
    if (std::ranges::find(*supported, level) != supported->end()) continue;
    return error(fmt::format("--levels: there is no level '{}'", level), model.target,
                 fmt::format("the levels are {}", fmt::join(*supported, ", ")), Fault::kUsage);
  }
  return {};
}

}  // namespace

void ExecutableOptions::declare(Options& options, ModelOptions& model) {
  options.option(
      config, "--config", "NAME,...",
      "configuration of the accelerator: a name or a .json file; several are accelerators beside each other, "
      "the preferred first");
  options.flag(cpu, "--cpu", "everything on the CPU");
  options.option(model.target, "--target", "TRIPLE",
                 "target machine: x86_64, aarch64, armhf, riscv64, or an LLVM triple; default: this machine's");
  options.option(model.levels, "--levels", "LEVEL,...",
                 "of its processor, one chosen where it is loaded: x86-64-v3; without: all of its architecture");
  options.flag(batch, "--batch", "for runs of many instances in batches of their operators");
  options.repeated(shared, "--shared", "NAME", "--batch: an input that all instances share; may be repeated");
  options.option(budget, "--budget", "BYTES",
                 "memory of the tensors of one run, as 64MiB: kernels are called again to stay within it (tenon plan)");
}

Status ExecutableOptions::apply(ModelOptions& model) const {
  if (!batch && !shared.empty()) {
    return error("--shared is for the instances of --batch", model.model, "add --batch", Fault::kUsage);
  }
  if (batch) model.batch = shared;
  if (!budget.empty()) {
    TENON_TRY_ASSIGN(bytes, read_bytes("--budget", budget));
    model.budget = static_cast<int64_t>(*bytes);
  }
  return check_target(model);
}

Expected<std::vector<compiler::AcceleratorOptions>> ExecutableOptions::accelerators() const {
  if (cpu) return {};
  return load_accelerators(config);
}

}  // namespace tenon::cli
