#include "compiler/lower/native.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/backends/llvm/compile.h"
#include "compiler/ir/builder.h"
#include "compiler/kernels/schedule.h"
#include "compiler/loop/builder.h"
#include "compiler/loop/safety.h"
#include "compiler/loop/schedule/pattern.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/text.h"
#include "compiler/loop/verify.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr std::array kViews{ops::kExpandDims, ops::kFlatten, ops::kIdentity, ops::kReshape, ops::kSqueeze};

}  // namespace

Expected<NativeKernels::Entry> NativeKernels::group(std::string_view name, const Function& group) {
  const bool views = std::ranges::all_of(group.body.bindings, [](const Binding& binding) {
    const auto* apply = std::get_if<Apply>(&binding.value);
    return apply && std::ranges::find(kViews, apply->op->id) != kViews.end();
  });
  if (views) return error("it only changes the shape, and copies nothing");
  TENON_TRY_ASSIGN(kernel, kernels::make_kernel(context_, module_, "kernel", group, options_.knobs));
  loop::Function scheduled = kernels::schedule(context_, std::move(kernel->function)).function;
  TENON_TRY(native::signature_of(context_, scheduled));  // its operands determine its sizes
  Variants of_levels = variants(group, *kernel, scheduled);
  Entry entry = add(name, std::move(scheduled), std::move(kernel->operands), std::move(of_levels));
  for (const kernels::OperatorKnobs& op : kernel->knobs) {
    if (options_.knobs && !options_.knobs(op.key).empty())
      entry.knobs += (entry.knobs.empty() ? "" : "; ") + kernels::str(op.settings());
  }
  return entry;
}

// Loops for levels with measured settings of their own, if their operands are packed as those of all levels.
NativeKernels::Variants NativeKernels::variants(const Function& group, const kernels::KernelFunction& kernel,
                                                const loop::Function& scheduled) {
  Variants variants;
  for (const auto& [level, knobs] : options_.level_knobs) {
    const bool differs = std::ranges::any_of(kernel.knobs, [&](const kernels::OperatorKnobs& op) {
      return knobs(op.key) != (options_.knobs ? options_.knobs(op.key) : kernels::KnobSettings());
    });
    if (!differs) continue;
    auto variant = kernels::make_kernel(context_, module_, "kernel", group, knobs);
    if (!variant || variant->operands != kernel.operands) continue;
    loop::Function function = kernels::schedule(context_, std::move(variant->function)).function;
    const auto wanted = native::signature_of(context_, scheduled), found = native::signature_of(context_, function);
    if (wanted && found && *wanted == *found && !equal(function, scheduled))
      variants.emplace(level, std::move(function));
  }
  return variants;
}

NativeKernels::Entry NativeKernels::add(std::string_view name, loop::Function function,
                                        std::vector<kernels::Operand> operands, Variants variants) {
  std::string text = loop::print(context_, function);
  for (const auto& [level, variant] : variants) text += level + loop::print(context_, variant);
  const auto [entry, is_new] = ids_.emplace(text, static_cast<uint32_t>(functions_.size()));
  if (is_new) {
    const std::string base(name);
    const int suffix = names_[base]++;
    function.name = context_.symbol(suffix == 0 ? base : fmt::format("{}.{}", base, suffix));
    for (auto& [level, variant] : variants) variant.name = function.name;
    functions_.push_back(std::move(function));
    variants_.push_back(std::move(variants));
  }
  return {entry->second, std::string(context_.name(functions_[entry->second].name)), {}, std::move(operands), {}};
}

Expected<NativeKernels::Entry> NativeKernels::loops(const loop::Function& function) {
  // Native code does not check that an index is in bounds.
  if (auto unproven = loop::unproven_obligations(context_, function); unproven.program)
    return std::unexpected(std::move(*unproven.program));
  TENON_TRY(loop::verify_scopes(context_, function));
  TENON_TRY(loop::check_loop_kinds(context_, function));
  TENON_TRY(native::supported(context_, function));
  loop::Function kernel = loop::has_schedule(function) ? function : kernels::schedule(context_, function).function;
  kernel.name = context_.symbol("kernel");  // so that equal functions have equal texts
  std::vector<kernels::Operand> operands;
  for (size_t i = 0; i < function.params.size(); ++i) operands.emplace_back(i);
  return add(context_.name(function.name), std::move(kernel), std::move(operands));
}

Expected<loop::Function> calling_function(Context& context, Symbol name, const Library& library) {
  loop::Builder builder(context, context.name(name));
  for (const Symbol dim : library.dims) builder.dim(context.name(dim));
  const std::string where = fmt::format("@{}", context.name(name));
  std::vector<loop::BufferId> inputs, outputs;
  for (size_t i = 0; i < library.params.size(); ++i) {
    const TensorType* tensor = library.params[i].tensor();
    if (!tensor) return error("a library function in native code must take tensors only", where);
    inputs.push_back(builder.param(fmt::format("x{}", i), tensor->dims, tensor->dtype));
  }
  const std::vector<Type> results = library.result.parts();
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorType* tensor = results[i].tensor();
    if (!tensor) return error("a library function in native code must return tensors only", where);
    outputs.push_back(builder.result(fmt::format("y{}", i), tensor->dims, tensor->dtype));
  }
  builder.call(library.symbol, inputs, outputs);
  return builder.build();
}

SingleOperator single_operator(Context& context, const Function& function, const Binding& binding) {
  const Apply& apply = std::get<Apply>(binding.value);
  SingleOperator single;
  Function& alone = single.function;
  // The builder adds no constants here, so the module stays as it is.
  Module scratch;
  Builder builder(context, scratch, alone);
  Atoms args;
  for (const Atom& atom : apply.args) {
    const auto* var = std::get_if<VarId>(&atom);
    if (!var) {
      args.push_back(atom);
      continue;
    }
    const auto before = std::ranges::find(single.args, atom);
    const VarInfo& info = function.info(*var);
    if (before == single.args.end()) {
      single.args.push_back(atom);
      args.push_back(builder.param(info.type, context.name(info.name)));
    } else {
      args.push_back(alone.params[static_cast<size_t>(before - single.args.begin())]);
    }
  }
  // The sizes of the arguments and of the result, which may be those of a match_cast.
  const auto add_dims = [&](Type type) {
    context.map_sizes(type, [&](Dim dim) {
      if (dim.valid()) {
        for_each_variable(dim, [&](Symbol name) {
          if (std::ranges::find(alone.dims, name) == alone.dims.end()) alone.dims.push_back(name);
        });
      }
      return dim;
    });
  };
  for (const VarInfo& info : alone.vars) add_dims(info.type);
  const auto var = static_cast<VarId>(alone.vars.size());
  alone.vars.push_back(function.info(binding.var));
  add_dims(function.type(binding.var));
  alone.body.bindings.push_back({var, Apply{apply.op, apply.attrs, args}});
  alone.body.result = var;
  alone.result = function.type(binding.var);
  return single;
}

Expected<NativeKernels::Entry> NativeKernels::operator_kernel(const Function& function, const Binding& binding) {
  const Apply& apply = std::get<Apply>(binding.value);
  if (!kernels::lowered(apply.op->id)) return error("it has no loop function");
  SingleOperator single = single_operator(context_, function, binding);
  TENON_TRY_ASSIGN(entry, group(apply.op->name, single.function));
  entry->args = std::move(single.args);
  return entry;
}

Expected<std::optional<runtime::NativeCode>> NativeKernels::compile() {
  if (functions_.empty()) return std::nullopt;
  std::vector<const loop::Function*> functions;
  for (const loop::Function& function : functions_) functions.push_back(&function);
  native::Options options{.triple = options_.triple, .levels = options_.levels, .contract = options_.contract};
  for (size_t i = 0; i < variants_.size(); ++i) {
    for (const auto& [level, variant] : variants_[i]) options.overrides[level].emplace(i, &variant);
  }
  TENON_TRY_ASSIGN(code, native::compile(context_, functions, options));
  return std::optional(std::move(*code));
}

}  // namespace tenon::compiler
