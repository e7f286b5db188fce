#include "compiler/lower/native.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <utility>

#include "compiler/backends/llvm/compile.h"
#include "compiler/backends/llvm/gpu_code.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/sizes.h"
#include "compiler/kernels/schedule.h"
#include "compiler/loop/builder.h"
#include "compiler/loop/safety.h"
#include "compiler/loop/schedule/pattern.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/text.h"
#include "compiler/loop/tree.h"
#include "compiler/loop/verify.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// The function of some levels.
struct LevelKernel {
  std::vector<const Machine*> machines;
  kernels::KernelFunction kernel;
};

// Moves each parameter of the function to its position, and adds those that are missing, which it does not read.
void set_parameters(Context& context, loop::Function& function, const std::vector<size_t>& positions,
                    const std::vector<kernels::Operand>& operands) {
  std::vector<std::optional<loop::BufferId>> params(operands.size());
  for (size_t i = 0; i < positions.size(); ++i) params[positions[i]] = function.params[i];
  function.params.clear();
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!params[i]) {
      const auto& constant = std::get<runtime::Tensor>(operands[i]);
      loop::Buffer buffer{loop::fresh(context, function, "unused"), constant.dtype(), {}};
      for (size_t d = 0; d < constant.shape().size(); ++d)
        buffer.axes.push_back({context.symbol(fmt::format("u{}", d)), context.dim(constant.shape()[d])});
      params[i] = static_cast<loop::BufferId>(function.buffers.size());
      function.buffers.push_back(std::move(buffer));
    }
    function.params.push_back(*params[i]);
  }
}

// Gives all functions of a kernel the operands of each: the constants of a level may be packed for its machine.
void unify_parameters(Context& context, kernels::KernelFunction& kernel, std::vector<LevelKernel>& others) {
  std::vector<kernels::KernelFunction*> functions{&kernel};
  for (LevelKernel& other : others) functions.push_back(&other.kernel);
  std::vector<kernels::Operand> operands;
  std::vector<std::vector<size_t>> positions;
  for (const kernels::KernelFunction* function : functions) {
    std::vector<size_t>& at = positions.emplace_back();
    for (const kernels::Operand& operand : function->operands) {
      size_t i = 0;
      while (i < operands.size() && (operands[i] != operand || std::ranges::find(at, i) != at.end())) ++i;
      if (i == operands.size()) operands.push_back(operand);
      at.push_back(i);
    }
  }
  for (size_t i = 0; i < functions.size(); ++i) {
    set_parameters(context, functions[i]->function, positions[i], operands);
    functions[i]->operands = operands;
  }
}

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

// The text of the function with numbers as the names of its buffers, loops and stages, which may come from the names of
// a model's layers: functions that are equal but for these have equal texts.
std::string without_names(const Context& context, loop::Function function) {
  std::string result;  // instructions have names of their own
  for (const loop::Function& intrinsic : std::exchange(function.intrinsics, {}))
    result += loop::print(context, intrinsic);
  const std::string text = loop::print(context, function);
  // Names that the text binds: %buffer, "for i", "stage s", "let v", and "i in (...)" of a stage's axes.
  std::unordered_map<std::string_view, size_t> numbers;  // those of buffers with their "%"
  const std::string_view view = text;
  const auto tokens = [&](const auto& visit) {
    for (size_t i = 0; i < view.size();) {
      if (!in_name(view[i])) {
        ++i;
        continue;
      }
      const size_t begin = i;
      while (i < view.size() && in_name(view[i])) ++i;
      visit(begin, view.substr(begin, i - begin));
    }
  };
  const auto follows = [&](size_t begin, std::string_view word) {
    return begin >= word.size() && view.substr(begin - word.size(), word.size()) == word;
  };
  tokens([&](size_t begin, std::string_view name) {
    if (follows(begin, "%")) {
      numbers.try_emplace(view.substr(begin - 1, name.size() + 1), numbers.size());
      return;
    }
    const bool bound = follows(begin, "for ") || follows(begin, "stage ") || follows(begin, "let ") ||
                       view.substr(begin + name.size()).starts_with(" in (");
    if (bound) numbers.try_emplace(name, numbers.size());
  });
  size_t done = 0;
  tokens([&](size_t begin, std::string_view name) {
    const auto number = numbers.find(follows(begin, "%") ? view.substr(begin - 1, name.size() + 1) : name);
    if (number == numbers.end()) return;
    // A function of arithmetic may have the name of a loop.
    const bool called = view.substr(begin + name.size()).starts_with("(") && !follows(begin, "stage ");
    if (called) return;
    result.append(view.substr(done, begin - done));
    result += fmt::format("#{}", number->second);
    done = begin + name.size();
  });
  result.append(view.substr(done));
  return result;
}

}  // namespace

NativeKernels::NativeKernels(Context& context, const Module& module, const CpuOptions& options)
    : context_(context), module_(module), options_(options) {
  std::vector<std::string> levels = options.levels;
  if (levels.empty()) levels = native::levels_of(options.triple).value_or(std::vector<std::string>());
  for (const std::string& level : levels) {
    if (const Machine* machine = find_machine(level)) machines_.push_back(machine);
  }
  // compile() refuses an unknown triple or level.
  if (machines_.empty()) machines_.push_back(&machines_of("").front());
}

Expected<NativeKernels::Entry> NativeKernels::group(std::string_view name, const Function& group) {
  const bool views = std::ranges::all_of(group.body.bindings, [](const Binding& binding) {
    const auto* apply = std::get_if<Apply>(&binding.value);
    return apply && apply->op->elements == Elements::kSame;
  });
  if (views) return error("it only changes the shape, and copies nothing");
  TENON_TRY_ASSIGN(kernel, scheduled(group, *machines_.front()));
  TENON_TRY(native::signature_of(context_, kernel->function));  // its operands determine its sizes
  Variants of_levels = variants(group, *kernel);
  Entry entry = add(name, std::move(kernel->function), std::move(kernel->operands), std::move(of_levels));
  for (const kernels::OperatorKnobs& op : kernel->knobs) {
    if (options_.knobs && !options_.knobs(op.key).empty())
      entry.knobs += (entry.knobs.empty() ? "" : "; ") + kernels::str(op.settings());
  }
  return entry;
}

const schedules::UserSchedule* NativeKernels::own_schedule(const Function& group, const Machine& machine) const {
  if (options_.schedules.empty()) return nullptr;
  return schedules::find_schedule(options_.schedules, kernels::kernel_names(context_, group), machine.name);
}

Expected<kernels::KernelFunction> NativeKernels::scheduled(const Function& group, const Machine& machine) {
  const schedules::UserSchedule* own = own_schedule(group, machine);
  if (!options_.schedules.empty()) {
    for (std::string& name : kernels::kernel_names(context_, group)) computed_.insert(std::move(name));
  }
  if (own) used_.insert(own);
  auto kernel = kernels::make_kernel(context_, module_, "kernel", group, machine, knobs_of(machine), own);
  if (!kernel && own && !refused_) refused_ = kernel.error();
  if (kernel && !own) kernel->function = kernels::schedule(context_, std::move(kernel->function)).function;
  return kernel;
}

void NativeKernels::add_scheduled(const BoundKernels& kernels) {
  if (options_.schedules.empty()) return;
  computed_.insert(kernels.computed.begin(), kernels.computed.end());
  for (const size_t index : kernels.schedules) used_.insert(&options_.schedules[index]);
}

Status NativeKernels::check_schedules() const {
  if (refused_) return std::unexpected(*refused_);
  for (const schedules::UserSchedule& schedule : options_.schedules) {
    if (used_.contains(&schedule)) continue;
    const bool other_level = computed_.contains(schedule.kernel);
    return error(fmt::format("no kernel {} has the schedule of '{}'",
                             other_level ? fmt::format("for {}", schedule.level) : "of the model", schedule.kernel),
                 fmt::format("{}:{}", schedule.file, schedule.line),
                 other_level ? std::string("--levels selects the levels that code is generated for")
                             : fmt::format("kernels compute {}", fmt::join(computed_, ", ")),
                 Fault::kUsage);
  }
  return {};
}

const kernels::KnobLookup& NativeKernels::knobs_of(const Machine& machine) const {
  const auto found = options_.level_knobs.find(std::string(machine.name));
  return found == options_.level_knobs.end() ? options_.knobs : found->second;
}

// The functions of the levels whose machines or measured settings give other loops. All functions of the kernel get one
// signature.
NativeKernels::Variants NativeKernels::variants(const Function& group, kernels::KernelFunction& kernel) {
  const auto own = [&](const Machine& machine) { return own_schedule(group, machine); };
  const bool is_own = std::ranges::any_of(machines_, [&](const Machine* machine) { return own(*machine) != nullptr; });
  if (kernel.knobs.empty() && !is_own) return {};  // nothing depends on the machine
  const bool has_dots = loop::has_dots(kernel.function);
  std::vector<LevelKernel> others;
  for (const Machine* machine : machines_) {
    const auto is_alike = [&](const Machine& other) {
      return machine->has_equal_schedules(other, has_dots) && has_equal_knobs(kernel, *machine, other) &&
             own(*machine) == own(other);
    };
    if (is_alike(*machines_.front())) continue;
    if (const auto same = std::ranges::find_if(others, [&](auto& other) { return is_alike(*other.machines.front()); });
        same != others.end()) {
      same->machines.push_back(machine);
      continue;
    }
    auto other = scheduled(group, *machine);
    if (!other) continue;  // the level runs the first function
    if (!equal(other->function, kernel.function) || other->operands != kernel.operands)
      others.push_back({{machine}, std::move(*other)});
  }
  unify_parameters(context_, kernel, others);
  Variants variants;
  for (const LevelKernel& other : others) {
    for (const Machine* machine : other.machines) variants.emplace(machine->name, other.kernel.function);
  }
  return variants;
}

// Whether the measured settings of the kernel's operators are equal for both machines.
bool NativeKernels::has_equal_knobs(const kernels::KernelFunction& kernel, const Machine& a, const Machine& b) const {
  const auto settings = [](const kernels::KnobLookup& knobs, const std::string& key) {
    return knobs ? knobs(key) : kernels::KnobSettings();
  };
  const kernels::KnobLookup &first = knobs_of(a), &second = knobs_of(b);
  return std::ranges::all_of(kernel.knobs, [&](const kernels::OperatorKnobs& op) {
    return settings(first, op.key) == settings(second, op.key);
  });
}

NativeKernels::Entry NativeKernels::add(std::string_view name, loop::Function function,
                                        std::vector<kernels::Operand> operands, Variants variants) {
  std::string text = without_names(context_, function);
  for (const auto& [level, variant] : variants) text += level + without_names(context_, variant);
  for (const loop::SizeRequirement& requirement : function.required)
    text += fmt::format("{}: {}\n", context_.str(requirement.size), requirement.message);
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
  const std::string name(context_.name(function.name));
  if (!options_.schedules.empty()) computed_.insert(name);
  const auto schedule = [&](const schedules::UserSchedule* own) -> Expected<loop::Function> {
    if (own) used_.insert(own);
    auto scheduled = kernels::schedule_loops(context_, function, own);
    if (!scheduled && !refused_) refused_ = scheduled.error();
    if (!scheduled) return std::unexpected(std::move(scheduled.error()));
    TENON_TRY(native::supported(context_, scheduled->function));
    scheduled->function.name = context_.symbol("kernel");  // so that equal functions have equal texts
    return std::move(scheduled->function);
  };
  const auto own_schedule = [&](const Machine& machine) {
    return schedules::find_schedule(options_.schedules, {name}, machine.name);
  };
  TENON_TRY_ASSIGN(kernel, schedule(own_schedule(*machines_.front())));
  Variants variants;
  for (const Machine* machine : machines_) {
    if (own_schedule(*machine) == own_schedule(*machines_.front())) continue;
    TENON_TRY_ASSIGN(other, schedule(own_schedule(*machine)));
    variants.emplace(machine->name, std::move(*other));
  }
  std::vector<kernels::Operand> operands;
  for (size_t i = 0; i < function.params.size(); ++i) operands.emplace_back(i);
  return add(name, std::move(*kernel), std::move(operands), std::move(variants));
}

uint32_t NativeKernels::step(std::string_view name, BoundStep step) {
  return add(name, std::move(step.function), std::move(step.operands)).kernel;
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
  const auto var = static_cast<VarId>(alone.vars.size());
  alone.vars.push_back(function.info(binding.var));
  alone.body.bindings.push_back({var, Apply{apply.op, apply.attrs, args, apply.computed}});
  alone.body.result = var;
  alone.result = function.type(binding.var);
  declare_dims(context, alone);  // those of the result may be a match_cast's
  return single;
}

Expected<NativeKernels::Entry> NativeKernels::operator_kernel(const Function& function, const Binding& binding) {
  const Apply& apply = std::get<Apply>(binding.value);
  if (!kernels::lowered(apply.op->id)) return error(fmt::format("it has no loop function: {}", apply.op->interpreted));
  for (const auto& [name, attr] : apply.computed) {
    if (std::holds_alternative<Atom>(attr))
      return error(fmt::format("its attribute '{}' is computed at run time", name));
  }
  SingleOperator single = single_operator(context_, function, binding);
  const std::vector<VarId> sizes = add_size_params(context_, function, loop::kElementTypes, single.function);
  single.args.insert(single.args.end(), sizes.begin(), sizes.end());
  TENON_TRY_ASSIGN(entry, group(apply.op->name, single.function));
  entry->args = std::move(single.args);
  return entry;
}

Expected<std::optional<runtime::NativeCode>> NativeKernels::compile_for_gpu() {
  if (functions_.empty()) return std::nullopt;
  std::vector<const loop::Function*> functions;
  for (loop::Function& function : functions_) {
    std::string name = fmt::format("k{}_{}", functions.size(), context_.name(function.name));
    std::ranges::replace_if(
        name, [](unsigned char c) { return !std::isalnum(c); }, '_');
    function.name = context_.symbol(name);
    functions.push_back(&function);
  }
  TENON_TRY_ASSIGN(code, native::compile_for_gpu(context_, functions, native::kLeastGpu));
  return std::optional(std::move(*code));
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
