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

constexpr std::array<std::string_view, 5> kViews{"expand_dims", "flatten", "identity", "reshape", "squeeze"};

}  // namespace

Expected<NativeKernels::Entry> NativeKernels::group(std::string_view name, const Function& group) {
  const bool views = std::ranges::all_of(group.body.bindings, [](const Binding& binding) {
    const auto* apply = std::get_if<Apply>(&binding.value);
    return apply && std::ranges::find(kViews, apply->op->name) != kViews.end();
  });
  if (views) return error("it changes the shape alone, and copies nothing");
  TENON_TRY_ASSIGN(kernel, kernels::make_kernel(context_, module_, "kernel", group, options_.choices));
  loop::Function scheduled = kernels::schedule(context_, std::move(kernel->function)).function;
  Variants own = variants(group, *kernel, scheduled);
  Entry entry = add(name, std::move(scheduled), std::move(kernel->operands), std::move(own));
  for (const kernels::Decided& one : kernel->decided) {
    if (options_.choices && !options_.choices(one.key).empty())
      entry.choice += (entry.choice.empty() ? "" : "; ") + kernels::str(one.choice());
  }
  return entry;
}

// What a level was measured to do best, where its operands are packed as those of all levels.
NativeKernels::Variants NativeKernels::variants(const Function& group, const kernels::Kernel& kernel,
                                                const loop::Function& scheduled) {
  Variants all;
  for (const auto& [level, choices] : options_.level_choices) {
    const bool differs = std::ranges::any_of(kernel.decided, [&](const kernels::Decided& one) {
      return choices(one.key) != (options_.choices ? options_.choices(one.key) : kernels::Choice());
    });
    if (!differs) continue;
    auto own = kernels::make_kernel(context_, module_, "kernel", group, choices);
    if (!own || own->operands != kernel.operands) continue;
    loop::Function function = kernels::schedule(context_, std::move(own->function)).function;
    const auto wanted = native::signature_of(context_, scheduled), found = native::signature_of(context_, function);
    if (wanted && found && *wanted == *found && !equal(function, scheduled)) all.emplace(level, std::move(function));
  }
  return all;
}

NativeKernels::Entry NativeKernels::add(std::string_view name, loop::Function function,
                                        std::vector<kernels::Operand> operands, Variants variants) {
  std::string text = loop::print(context_, function);
  for (const auto& [level, own] : variants) text += level + loop::print(context_, own);
  const auto [place, is_new] = known_.emplace(text, static_cast<uint32_t>(functions_.size()));
  if (is_new) {
    const std::string base(name);
    const int number = names_[base]++;
    function.name = context_.symbol(number == 0 ? base : fmt::format("{}.{}", base, number));
    for (auto& [level, own] : variants) own.name = function.name;
    functions_.push_back(std::move(function));
    variants_.push_back(std::move(variants));
  }
  const std::string own(context_.name(functions_[place->second].name));
  return {place->second, own, {}, std::move(operands), {}};
}

Expected<NativeKernels::Entry> NativeKernels::loops(const loop::Function& function) {
  // Native code does not look whether an index is inside.
  if (auto doubts = loop::doubts(context_, function); doubts.program)
    return std::unexpected(std::move(*doubts.program));
  TENON_TRY(loop::verify_scopes(context_, function));
  TENON_TRY(loop::check_marks(context_, function));
  TENON_TRY(native::supported(context_, function));
  loop::Function kernel = loop::has_schedule(function) ? function : kernels::schedule(context_, function).function;
  kernel.name = context_.symbol("kernel");  // equal ones are one
  std::vector<kernels::Operand> operands;
  for (size_t i = 0; i < function.params.size(); ++i) operands.emplace_back(i);
  return add(context_.name(function.name), std::move(kernel), std::move(operands));
}

Expected<loop::Function> calling(Context& context, Symbol name, const Library& library) {
  loop::Builder builder(context, context.name(name));
  for (const Symbol dim : library.dims) builder.dim(context.name(dim));
  const std::string where = fmt::format("@{}", context.name(name));
  std::vector<loop::BufferId> inputs, outputs;
  for (size_t i = 0; i < library.params.size(); ++i) {
    const TensorType* tensor = library.params[i].tensor();
    if (!tensor) return error("a library function of native code takes tensors", where);
    inputs.push_back(builder.param(fmt::format("x{}", i), tensor->dims, tensor->dtype));
  }
  const std::vector<Type> results = library.result.parts();
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorType* tensor = results[i].tensor();
    if (!tensor) return error("a library function of native code gives tensors", where);
    outputs.push_back(builder.result(fmt::format("y{}", i), tensor->dims, tensor->dtype));
  }
  builder.call(library.symbol, inputs, outputs);
  return builder.build();
}

Alone operator_alone(Context& context, const Function& function, const Binding& binding) {
  const Apply& apply = std::get<Apply>(binding.value);
  Alone made;
  Function& alone = made.function;
  alone.dims = function.dims;
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
    const auto before = std::ranges::find(made.args, atom);
    const VarInfo& info = function.info(*var);
    if (before == made.args.end()) {
      made.args.push_back(atom);
      args.push_back(builder.param(info.type, context.name(info.name)));
    } else {
      args.push_back(alone.params[static_cast<size_t>(before - made.args.begin())]);
    }
  }
  const auto var = static_cast<VarId>(alone.vars.size());
  alone.vars.push_back(function.info(binding.var));
  alone.body.bindings.push_back({var, Apply{apply.op, apply.attrs, args}});
  alone.body.result = var;
  alone.result = function.type(binding.var);
  return made;
}

Expected<NativeKernels::Entry> NativeKernels::one(const Function& function, const Binding& binding) {
  const Apply& apply = std::get<Apply>(binding.value);
  if (!kernels::lowered(apply.op->name)) return error("it has no loop function");
  Alone alone = operator_alone(context_, function, binding);
  TENON_TRY_ASSIGN(entry, group(apply.op->name, alone.function));
  entry->args = std::move(alone.args);
  return entry;
}

Expected<std::optional<runtime::NativeCode>> NativeKernels::compile() {
  if (functions_.empty()) return std::nullopt;
  std::vector<const loop::Function*> all;
  for (const loop::Function& function : functions_) all.push_back(&function);
  native::Options options{.triple = options_.triple, .levels = options_.levels, .contract = options_.contract};
  for (size_t i = 0; i < variants_.size(); ++i) {
    for (const auto& [level, own] : variants_[i]) options.of_level[level].emplace(i, &own);
  }
  TENON_TRY_ASSIGN(code, native::compile(context_, all, options));
  return std::optional(std::move(*code));
}

}  // namespace tenon::compiler
