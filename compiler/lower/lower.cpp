#include "compiler/lower/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "compiler/backends/llvm/compile_functions.h"
#include "compiler/ir/batching.h"
#include "compiler/ir/sizes.h"
#include "compiler/loop/bindings.h"
#include "compiler/lower/function.h"
#include "compiler/lower/graph.h"
#include "compiler/lower/memory.h"
#include "compiler/lower/program.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr size_t kMaxCopies =
    64;  // of a function that is lowered at each call; the inliner has copied what is worth it

}  // namespace

Status ProgramLowering::run(Symbol entry, Module* consumed) {
  consumed_ = consumed;
  if (consumed) {
    std::vector<Symbol> roots{entry};
    for (const Symbol unit : options.units) {
      if (const auto& batched = module.function(unit)->batched) roots.push_back(*batched);
    }
    uses_.emplace(module, roots);
  }
  const Function& function = *module.function(entry);
  const uint32_t index = add_function();
  TENON_TRY(
      FunctionLowering(*this, function, std::string(context.name(entry)), FunctionLowering::Role::kEntry).run(index));
  TENON_TRY(lower_functions());
  TENON_TRY(add_units());
  TENON_TRY(compile_kernels());
  plan_memory_of_all();  // by the signatures of the kernels, which say what may be in place
  if (options.cpu.ahead_of_time) {
    TENON_TRY_ASSIGN(compiled, native::compile_functions(out, options.cpu.triple));
    out.compiled = std::move(*compiled);
  }
  return {};
}

Status ProgramLowering::lower_functions() {
  while (!work_.empty()) {
    const Work next = std::move(work_.back());
    work_.pop_back();
    const auto role = next.is_value ? FunctionLowering::Role::kClosure : FunctionLowering::Role::kCallee;
    TENON_TRY(FunctionLowering(*this, *next.function, next.name, role).run(next.index));
  }
  return {};
}

bool ProgramLowering::is_unit(Symbol name) const {
  return std::ranges::find(options.units, name) != options.units.end();
}

namespace {

bool is_tensor(Type type) { return type.tensor() != nullptr; }

std::vector<Type> types_of(const Function& function, std::span<const VarId> vars) {
  std::vector<Type> types;
  for (const VarId var : vars) types.push_back(function.type(var));
  return types;
}

std::vector<Type> tensors_of_result(const Function& function) {
  if (const TupleType* tuple = function.result.tuple()) return tuple->fields;
  return {function.result};
}

// Which of the tensors has one more axis in the batched function.
std::vector<bool> own(const std::vector<Type>& single, const std::vector<Type>& batched) {
  std::vector<bool> result;
  for (size_t i = 0; i < single.size(); ++i)
    result.push_back(batched[i].tensor()->rank() == single[i].tensor()->rank() + 1);
  return result;
}

// Which of the tensors have this size as their first one.
std::vector<bool> having_length(const std::vector<Type>& types, Dim length) {
  std::vector<bool> result;
  for (const Type type : types) result.push_back(type.tensor()->rank() > 0 && type.tensor()->dims[0] == length);
  return result;
}

}  // namespace

Status ProgramLowering::add_units() {
  for (const Symbol name : options.units) {
    const Function& unit = *module.function(name);
    const auto found = callees_.find(name);
    if (found == callees_.end()) continue;
    const std::vector<Type> params = types_of(unit, unit.params), results = tensors_of_result(unit);
    if (unit.result.tuple() && results.size() < 2) continue;  // a tuple that the executable's units do not have
    if (!std::ranges::all_of(params, is_tensor) || !std::ranges::all_of(results, is_tensor)) continue;
    runtime::Unit made{.function = found->second,
                       .batched = {},
                       .own = std::vector<bool>(params.size(), true),
                       .own_results = std::vector<bool>(results.size(), true)};
    // A size that no operand determines is one parameter more.
    const auto takes = [&](uint32_t function) { return out.functions[function].params.size(); };
    if (takes(made.function) != params.size()) continue;
    if (unit.joined_axes > 0) {
      made.joined_axes = unit.joined_axes;
      const Dims& rows = results[0].tensor()->dims;
      for (size_t i = 0; i < params.size(); ++i) {
        const Dims& dims = params[i].tensor()->dims;
        made.own[i] =
            dims.size() >= unit.joined_axes && std::equal(rows.begin(), rows.begin() + unit.joined_axes, dims.begin());
      }
    } else if (unit.batched) {
      const Function& batched = *module.function(*unit.batched);
      const uint32_t index = callee(*unit.batched);
      TENON_TRY(lower_functions());
      const auto length = sequence_length(module, unit);
      if (takes(index) == params.size() + (length ? 1 : 0)) {
        made.batched = index;
        made.own = own(params, types_of(batched, batched.params));
        made.own_results = own(results, tensors_of_result(batched));
      }
      if (made.batched && length) {
        made.sequences = having_length(params, *length);
        made.sequence_results = having_length(results, *length);
      }
    }
    out.units.push_back(std::move(made));
  }
  return {};
}

Status ProgramLowering::compile_kernels() {
  TENON_TRY(natives.check_schedules());
  TENON_TRY_ASSIGN(code, natives.compile());
  if (*code) out.natives.push_back(std::move(**code));
  if (options.gpu_functions)
    std::ranges::copy_if(natives.functions(), std::back_inserter(*options.gpu_functions), loop::is_bound);
  if (options.cpu_functions) *options.cpu_functions = natives.functions();
  TENON_TRY_ASSIGN(gpu_code, gpu_kernels.compile_for_gpu());
  if (!*gpu_code) return {};
  std::vector<runtime::NativeKernel> regions;
  for (const GpuRegion& region : gpu_regions) regions.push_back(region.kernel((*gpu_code)->kernels));
  (*gpu_code)->kernels = std::move(regions);
  const auto index = static_cast<uint32_t>(out.natives.size());
  out.natives.push_back(std::move(**gpu_code));
  for (runtime::Function& function : out.functions) {
    for (runtime::Instruction& instruction : function.code) {
      auto* call = std::get_if<runtime::CallNative>(&instruction.operation);
      if (call && call->code == kGpuCode) call->code = index;
      auto* start = std::get_if<runtime::StartNative>(&instruction.operation);
      if (start && start->code == kGpuCode) start->code = index;
    }
  }
  if (options.gpu_functions) std::ranges::copy(gpu_kernels.functions(), std::back_inserter(*options.gpu_functions));
  return {};
}

void ProgramLowering::made_kernel(const Function& function) {
  if (consumed_) uses_->free_used_by(*consumed_, function);
}

// An arena of a function that its own calls enter again would be needed for each frame, also of results that are dead.
void ProgramLowering::plan_memory_of_all() {
  const std::vector<bool> reentered = find_reentered(out.functions);
  for (size_t i = 0; i < out.functions.size(); ++i) {
    if (reentered[i]) forget_slots(out.functions[i]);
    const FrameMemory memory = place_results(out.functions[i], out.natives);
    if (i == out.entry) out.facts.emplace_back("memory", str(memory));
  }
}

uint32_t ProgramLowering::add_function() {
  out.functions.emplace_back();
  return static_cast<uint32_t>(out.functions.size() - 1);
}

uint32_t ProgramLowering::callee(Symbol name) {
  const auto [entry, is_new] = callees_.emplace(name, 0);
  if (is_new) {
    entry->second = add_function();
    work_.push_back({module.function(name), std::string(context.name(name)), false, entry->second});
  }
  return entry->second;
}

Expected<uint32_t> ProgramLowering::value(Symbol name) {
  const auto before = values_.find(name);
  if (before != values_.end()) return before->second;
  const auto global = module.globals.find(name);
  if (global == module.globals.end())
    return error(fmt::format("there is no function @{}", context.name(name)), {}, {}, Fault::kInternal);
  const Function* function = module.function(name);
  if (function && function->target.empty() && function->composite.empty() && hidden_dims(context, *function).empty())
    return values_.emplace(name, callee(name)).first->second;
  // A function that calls the global with its own parameters.
  const Signature signature = signature_of(context, global->second);
  Function& made = made_.emplace_back();
  made.dims = signature.dims;
  made.types = signature.types;
  Atoms args;
  for (const Type param : signature.params) {
    const auto var = static_cast<VarId>(made.vars.size());
    made.vars.push_back({param, context.symbol(fmt::format("x{}", made.vars.size())), {}});
    made.params.push_back(var);
    args.emplace_back(var);
  }
  const auto result = static_cast<VarId>(made.vars.size());
  made.vars.push_back({signature.result, context.symbol("result"), {}});
  made.result = signature.result;
  made.body.bindings.push_back({result, Call{name, args}});
  made.body.result = result;
  const uint32_t index = add_function();
  values_.emplace(name, index);
  work_.push_back({&made, fmt::format("{} as a value", context.name(name)), true, index});
  return index;
}

// Equal constants share one entry: two kernels may pack the same weights in the same way.
uint32_t ProgramLowering::constant(const runtime::Tensor& tensor) {
  const auto bytes = tensor.bytes();
  auto& same_hash =
      constants_[std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()})];
  const auto found = std::ranges::find_if(same_hash, [&](uint32_t i) { return out.constants[i] == tensor; });
  if (found != same_hash.end()) return *found;
  same_hash.push_back(static_cast<uint32_t>(out.constants.size()));
  out.constants.push_back(tensor);
  return same_hash.back();
}

uint32_t ProgramLowering::type(Symbol name) {
  const auto [entry, is_new] = types_.emplace(name, static_cast<uint32_t>(out.types.size()));
  if (is_new) {
    runtime::DataType& type = out.types.emplace_back();
    type.name = context.name(name);
    for (const Constructor& constructor : module.adts.at(name).constructors) {
      type.constructors.push_back(
          {std::string(context.name(constructor.name)), static_cast<uint32_t>(constructor.fields.size())});
    }
  }
  return entry->second;
}

void ProgramLowering::add_types(Type given) {
  std::vector<Type> open{given};
  while (!open.empty()) {
    const Type next = open.back();
    open.pop_back();
    if (const TupleType* tuple = next.tuple()) open.insert(open.end(), tuple->fields.begin(), tuple->fields.end());
    const AdtType* adt = next.adt();
    if (!adt) continue;
    open.insert(open.end(), adt->args.begin(), adt->args.end());
    if (types_.contains(adt->name)) continue;
    type(adt->name);
    for (const Constructor& constructor : module.adts.at(adt->name).constructors)
      open.insert(open.end(), constructor.fields.begin(), constructor.fields.end());
  }
}

bool ProgramLowering::inlines(Symbol name, const Function& function) {
  const auto [entry, is_new] = inlines_.emplace(name, false);
  if (is_new && !is_unit(name))
    entry->second = first_order(module, function) && !needs_sizes(context, module, function);
  return entry->second && ++copies_[name] <= kMaxCopies;
}

namespace {

Expected<runtime::Executable> lower(Context& context, const Module& module, Module* consumed, Symbol entry,
                                    std::span<const Target> targets, const LowerOptions& options) {
  const Function* function = module.function(entry);
  if (!function)
    return error(fmt::format("the module has no function @{}", context.name(entry)), {}, {}, Fault::kInternal);
  runtime::Executable executable;
  executable.name = options.name;
  executable.facts = options.facts;
  TENON_TRY(ProgramLowering(context, module, targets, options, executable).run(entry, consumed));
  executable.graph = make_graph(context, module, *function);
  return executable;
}

}  // namespace

Expected<runtime::Executable> lower(Context& context, const Module& module, Symbol entry,
                                    std::span<const Target> targets, const LowerOptions& options) {
  return lower(context, module, nullptr, entry, targets, options);
}

Expected<runtime::Executable> lower(Context& context, Module&& module, Symbol entry, std::span<const Target> targets,
                                    const LowerOptions& options) {
  Module consumed = std::move(module);
  return lower(context, consumed, &consumed, entry, targets, options);
}

}  // namespace tenon::compiler
