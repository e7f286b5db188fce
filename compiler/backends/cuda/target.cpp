#include "compiler/backends/cuda/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/backends/llvm/gpu_code.h"
#include "compiler/ir/operator.h"
#include "compiler/kernels/kernels.h"
#include "compiler/kernels/schedule.h"
#include "compiler/loop/schedule/bind.h"
#include "compiler/machine/machine.h"
#include "support/try.h"

namespace tenon::compiler::cuda {
namespace {

// Adds the bindings of `from` to `to`, with its parameters replaced by `copies`; returns the copy of its result.
Expected<Atom> append(const Module& module, const Function& from, std::map<VarId, Atom> copies, Function& to) {
  for (const Binding& binding : from.body.bindings) {
    Value value = binding.value;
    for_each_operand(value, [&](Atom& atom) {
      if (const auto* var = std::get_if<VarId>(&atom)) atom = copies.at(*var);
    });
    const auto* call = std::get_if<Call>(&value);
    const auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr;
    const Function* composite = symbol ? module.function(*symbol) : nullptr;
    if (composite) {
      std::map<VarId, Atom> inner;
      for (size_t i = 0; i < composite->params.size(); ++i) inner.emplace(composite->params[i], call->args[i]);
      TENON_TRY_ASSIGN(result, append(module, *composite, std::move(inner), to));
      copies.emplace(binding.var, *result);
      continue;
    }
    const auto var = static_cast<VarId>(to.vars.size());
    to.vars.push_back(from.info(binding.var));
    to.body.bindings.push_back({var, std::move(value)});
    copies.emplace(binding.var, var);
  }
  const auto* result = std::get_if<VarId>(&from.body.result);
  return result ? copies.at(*result) : from.body.result;
}

// The region without calls of composites.
Expected<Function> inlined(const Module& module, const Function& region) {
  Function function;
  std::map<VarId, Atom> copies;
  for (const VarId param : region.params) {
    const auto var = static_cast<VarId>(function.vars.size());
    function.vars.push_back(region.info(param));
    function.params.push_back(var);
    copies.emplace(param, var);
  }
  TENON_TRY_ASSIGN(result, append(module, region, std::move(copies), function));
  function.body.result = *result;
  function.result = region.result;
  return function;
}

Expected<BoundKernel> bound_kernel(Context& context, const Module& module, const Function& function) {
  // The templates' tiles for 32 lanes become warps.
  TENON_TRY_ASSIGN(kernel, kernels::make_kernel(context, module, "kernel", function, *find_machine("x86-64-v4")));
  loop::Function scheduled = kernels::schedule(context, std::move(kernel->function)).function;
  TENON_TRY_ASSIGN(bound, loop::bound(context, std::move(scheduled)));
  return BoundKernel{false, std::move(*bound), std::move(kernel->operands)};
}

Status accepts(Context& context, const Module& module, const Function& function, const Match&) {
  for (const VarInfo& info : function.vars) {
    for (const Type part : info.type.parts()) {
      const TensorType* tensor = part.tensor();
      if (!tensor) return error(fmt::format("{} is not a tensor", context.str(part)));
      if (!tensor->shape()) return error(fmt::format("the shape {} is not static", context.str(tensor->dims)));
    }
  }
  const TensorType* result = function.result.tensor();
  if (result && result->dims.empty()) return error("a scalar stays on the host");
  TENON_TRY(bound_kernel(context, module, function));
  return {};
}

// Also requires that the kernel becomes PTX: a function of the C library, or a thread's large buffer, does not.
Status accepts_for_gpu(Context& context, const Module& module, const Function& function, const Match& match) {
  TENON_TRY(accepts(context, module, function, match));
  TENON_TRY_ASSIGN(kernel, bound_kernel(context, module, function));
  const loop::Function* const functions[] = {&kernel->function};
  TENON_TRY(native::compile_for_gpu(context, functions, "sm_80"));
  return {};
}

// Whether every operator after the first is elementwise on values of the first one's shape, so that one kernel computes
// all of them without computing a value twice.
bool is_one_nest(const Function& function) {
  const TensorType* first = nullptr;
  for (const Binding& binding : function.body.bindings) {
    const auto* apply = std::get_if<Apply>(&binding.value);
    if (!apply) continue;
    const TensorType* type = function.type(binding.var).tensor();
    if (!type) return false;
    if (!first) {
      first = type;
      continue;
    }
    const bool elementwise =
        apply->op->pattern == OpPattern::kElementwise || apply->op->pattern == OpPattern::kBroadcast;
    if (!elementwise || type->dims != first->dims) return false;
  }
  return true;
}

Status fits(Context& context, const Module& module, const Function& region) {
  TENON_TRY_ASSIGN(function, inlined(module, region));
  if (!is_one_nest(*function)) return error("a kernel is one operator and the elementwise ones after it");
  TENON_TRY(bound_kernel(context, module, *function));
  return {};
}

template <bool kEmulated>
Expected<RegionKernel> generate(Context& context, const Module& module, Symbol, const Function& region) {
  TENON_TRY_ASSIGN(function, inlined(module, region));
  TENON_TRY_ASSIGN(kernel, bound_kernel(context, module, *function));
  kernel->emulated = kEmulated;
  return RegionKernel(std::move(*kernel));
}

// One row for each operator that has a loop function.
std::vector<TargetPattern> patterns(Status (*accepts)(Context&, const Module&, const Function&, const Match&)) {
  constexpr size_t kMaxOperands = 8;  // of an operator with any number of them
  std::vector<TargetPattern> rows;
  const Context context;
  for (const Operator* known : context.operators()) {
    if (!kernels::lowered(known->id) || kernels::only_reshapes(known->id)) continue;
    std::vector<GraphPattern> arities;
    const size_t most = known->variadic() ? kMaxOperands : known->inputs.size();
    for (size_t n = 0; n <= most; ++n) arities.push_back(op(known->id, std::vector<GraphPattern>(n, any())));
    rows.push_back({fmt::format("cuda.{}", known->name), either(std::move(arities)), accepts});
  }
  return rows;
}

}  // namespace

Target make_target() {
  Target target;
  target.name = "cuda";
  target.documentation = "kernels of GPUs: bound to blocks and threads, and compiled to PTX";
  target.patterns = patterns(accepts_for_gpu);
  target.fits = fits;
  target.generate = generate<false>;
  return target;
}

Target make_emulated_target() {
  Target target = make_target();
  target.documentation = "kernels of GPUs, emulated: bound to blocks and threads, and compiled for the CPU";
  target.patterns = patterns(accepts);
  target.generate = generate<true>;
  return target;
}

}  // namespace tenon::compiler::cuda
