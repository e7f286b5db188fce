#include "compiler/backends/cuda/target.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "compiler/backends/cuda/region.h"
#include "compiler/backends/llvm/compile.h"
#include "compiler/backends/llvm/gpu_code.h"
#include "compiler/ir/operator.h"
#include "compiler/kernels/kernels.h"
#include "support/try.h"

namespace tenon::compiler::cuda {
namespace {

constexpr std::string_view kScheduledGpu = "sm_90";  // templates select their tiles for it

Expected<BoundKernels> kernels_of(Context& context, const Module& module, const Function& region,
                                  const Machine& machine, const std::vector<schedules::UserSchedule>& schedules = {}) {
  TENON_TRY_ASSIGN(function, inlined(context, module, region));
  return steps_of(context, module, *function, machine, schedules);
}

// Whether the operators have kernels whose sizes their operands determine; for a GPU, also kernels that become PTX: a
// function of the C library, or a thread's large buffer, does not.
Status accepts(Context& context, const Module& module, const Function& function, const Machine& machine,
               bool emulated) {
  for (const VarInfo& info : function.vars) {
    for (const Type part : info.type.parts()) {
      const TensorType* tensor = part.tensor();
      if (!tensor) return error(fmt::format("{} is not a tensor", context.str(part)));
    }
  }
  const TensorType* result = function.result.tensor();
  if (result && result->dims.empty()) return error("a scalar stays on the host");
  TENON_TRY_ASSIGN(kernels, kernels_of(context, module, function, machine));
  for (const BoundStep& step : kernels->steps) TENON_TRY(native::signature_of(context, step.function));
  for (const BoundStep& step : kernels->steps)
    if (!emulated) TENON_TRY(native::check_for_gpu(context, step.function, native::kLeastGpu));
  return {};
}

// One row for each operator that has a loop function. One that only changes a shape copies nothing on the host, so a
// GPU takes it where its operand is there.
std::vector<TargetPattern> patterns(bool emulated, const Machine& machine) {
  const auto check = [emulated, machine](Context& context, const Module& module, const Function& function,
                                         const Match& match) -> Status {
    constexpr size_t kMaxOperands = 8;  // of an operator with any number of them
    const size_t operands = std::get<Apply>(function.body.bindings[match.bindings.front()].value).args.size();
    if (operands > kMaxOperands)
      return error(fmt::format("it has {} operands, at most {} are supported", operands, kMaxOperands));
    return accepts(context, module, function, machine, emulated);
  };
  std::vector<TargetPattern> rows;
  const Context context;
  for (const Operator* known : context.operators()) {
    if (!kernels::lowered(known->id)) continue;
    rows.push_back({.composite = fmt::format("cuda.{}", known->name),
                    .pattern = op(known->id),
                    .accepts = check,
                    .of_own_results = known->elements == Elements::kSame});
  }
  return rows;
}

Target target_of(bool emulated, const TargetOptions& options) {
  Machine machine = *find_machine(kScheduledGpu);
  machine.inexact = options.inexact;
  Target target;
  target.name = "cuda";
  target.patterns = patterns(emulated, machine);
  target.generate = [emulated, machine, schedules = options.schedules](
                        Context& context, const Module& module, Symbol,
                        const Function& region) -> Expected<RegionKernel> {
    TENON_TRY_ASSIGN(kernels, kernels_of(context, module, region, machine, schedules));
    kernels->emulated = emulated;
    return RegionKernel(std::move(*kernels));
  };
  return target;
}

}  // namespace

Target make_target(const TargetOptions& options) {
  Target target = target_of(false, options);
  target.documentation = "kernels of GPUs: bound to blocks and threads, and compiled to PTX";
  return target;
}

Target make_emulated_target(const TargetOptions& options) {
  Target target = target_of(true, options);
  target.documentation = "kernels of GPUs, emulated: bound to blocks and threads, and compiled for the CPU";
  return target;
}

std::vector<TargetRecord> records() {
  return {{.name = "cuda",
           .documentation = "a GPU of NVIDIA",
           .make = make_target,
           .native = true,
           .excludes = "cuda:emulated"},
          {.name = "cuda:emulated",
           .documentation = "its kernels, compiled for the CPU",
           .make = make_emulated_target,
           .native = true,
           .excludes = "cuda"}};
}

}  // namespace tenon::compiler::cuda
