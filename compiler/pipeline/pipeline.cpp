#include "compiler/pipeline/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "compiler/batch/units.h"
#include "compiler/frontend/onnx.h"
#include "compiler/ir/dim_names.h"
#include "compiler/ir/text.h"
#include "compiler/loop/tree.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/native.h"
#include "compiler/partition/buckets.h"
#include "compiler/passes/passes.h"
#include "compiler/pipeline/native_runner.h"
#include "compiler/quantize/measured.h"
#include "compiler/quantize/qdq.h"
#include "compiler/quantize/range_warnings.h"
#include "compiler/quantize/trained_layer.h"
#include "compiler/remat/rematerialize.h"
#include "compiler/targets/targets.h"
#include "runtime/native/thread_pool.h"
#include "runtime/vm/buffer_pool.h"
#include "support/clock.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// Makes the entry @main, from which passes find what is used; another @main gets another name.
void make_main(Model& model) {
  const Symbol main = model.context->symbol("main");
  if (model.entry == main) return;
  if (model.module.globals.contains(main)) {
    Symbol unused = main;
    for (int i = 1; model.module.globals.contains(unused); ++i)
      unused = model.context->symbol(fmt::format("main_{}", i));
    rename_global(model.module, main, unused);
  }
  rename_global(model.module, model.entry, main);
  model.entry = main;
}

// Gives each operator on the CPU the kernel that was made for it: the first of its span and name.
void name_kernels(std::span<Placement> placements, std::span<const CpuPlacement> on_cpu) {
  std::map<std::pair<SpanId, std::string_view>, const CpuPlacement*> kernels;
  for (const CpuPlacement& made : on_cpu) kernels.try_emplace({made.span, made.op}, &made);
  for (Placement& placement : placements) {
    const auto found = placement.target.empty() ? kernels.find({placement.span, placement.op}) : kernels.end();
    if (found == kernels.end()) continue;
    const CpuPlacement& made = *found->second;
    placement.kernel = made.kernel.empty() ? fmt::format("reference kernel: {}", made.reason)
                                           : fmt::format("native @{}{}{}", made.kernel,
                                                         made.knobs.empty() ? "" : ", measured: ", made.knobs);
  }
}

constexpr std::string_view kQuantize = "quantize", kRequantizeLayers = "requantize_layers",
                           kMakeBuckets = "make_buckets", kMakeUnits = "make_units", kPartition = "partition",
                           kRematerialize = "rematerialize";

// Runs a step of compile_steps() by the pass manager.
Expected<Module> run_step(Context& context, Module module, std::string_view name, const PassOptions& options,
                          std::function<Expected<Module>(Context&, Module)> run) {
  Pass step = *std::ranges::find(compile_steps(), name, &Pass::name);
  step.run = std::move(run);
  return run_passes(context, std::move(module), std::span(&step, 1), options);
}

// Runs passes of compiler/passes.
Expected<Module> run_named(Context& context, Module module, std::initializer_list<std::string> names,
                           const PassOptions& options) {
  TENON_TRY_ASSIGN(passes, find_passes(names));
  return run_passes(context, std::move(module), *passes, options);
}

// Calibrates and quantizes the model, into `result`.
Expected<MeasuredWay> quantize_model(const Model& model, bool wants_integers, const CompileOptions& options,
                                     Compilation& result) {
  Context& context = *model.context;
  const Samples& samples = *options.calibration;
  QuantizeOptions quantization = options.quantize;
  Module layers = clone(model.module);
  if (wants_integers) {
    TENON_TRY_ASSIGN(canonical, run_named(context, std::move(layers), {"canonical_layers"}, options.passes));
    layers = std::move(*canonical);
  }
  TENON_TRY_ASSIGN(kept, layers_named(context, layers, model.entry, options.keep));
  quantization.keep.merge(*kept);
  CalibrationOptions calibration = options.calibrate;
  if (options.cpu.native && !calibration.runner) calibration.runner = native_runner(context);
  TENON_TRY_ASSIGN(found, calibrate_by_error(context, layers, model.entry, samples, calibration, quantization));
  TENON_TRY_ASSIGN(warnings, range_warnings(context, found->equalized ? *found->equalized : layers, model.entry,
                                            samples, found->ranges));
  result.notes = *warnings + report(*found);
  quantization.means = std::move(found->means);
  result.equalized = std::move(found->equalized);
  const Module& source = result.equalized ? *result.equalized : layers;
  if (options.accuracy.least != 0) {
    TENON_TRY_ASSIGN(precision, choose_precision(context, source, model.entry, samples, found->ranges, options.accuracy,
                                                 quantization, calibration));
    quantization.keep = std::move(precision->keep);
    result.notes += report(*precision, options.accuracy, samples.size());
  }
  TENON_TRY_ASSIGN(quantized,
                   run_step(context, clone(source), kQuantize, options.passes, [&](Context&, const Module& module) {
                     return quantize(context, module, model.entry, found->ranges, quantization, &result.scales);
                   }));
  result.quantized = std::move(*quantized);
  return found->way;
}

}  // namespace

std::span<const Pass> compile_steps() {
  static const std::vector<Pass> kSteps = {
      {std::string(kQuantize), "Makes float layers integer ones, by the ranges of samples.", {}},
      {std::string(kRequantizeLayers), "Rounds the sums of a quantized model's layers as integer targets do.", {}},
      {std::string(kMakeBuckets), "Copies the entry for given sizes of its unknown sizes.", {}},
      {std::string(kMakeUnits), "Makes functions of the operators that batches of instances join.", {}},
      {std::string(kPartition), "Assigns operators to targets, and makes a function of each region.", {}},
      {std::string(kRematerialize), "Calls kernels again, by the plan of a memory budget.", {}}};
  return kSteps;
}

Expected<Module> with_integer_layers(Context& context, Module module, bool wants_integers, ValueScales* scales,
                                     const PassOptions& passes) {
  if (!wants_integers) return run_named(context, std::move(module), {"integer_layers"}, passes);
  TENON_TRY_ASSIGN(layers, run_step(context, std::move(module), kRequantizeLayers, passes, [&](Context&, Module whole) {
                     return requantize_layers(context, std::move(whole), scales);
                   }));
  return run_named(context, std::move(*layers), {"simplify", "cse", "integer_layers"}, passes);
}

Expected<Module> quantized_for_training(const Model& model, CompileOptions options, std::string& notes) {
  options.quantize.trained = true;
  Compilation result;
  TENON_TRY(quantize_model(model, true, options, result));
  notes = std::move(result.notes);
  return std::move(result.quantized);
}

Expected<Module> with_integer_weights(Context& context, Module trained) {
  TENON_TRY_ASSIGN(inlined, run_passes(context, std::move(trained), standard_passes()));
  TENON_TRY_ASSIGN(integers, integer_form(context, std::move(*inlined)));
  return run_passes(context, std::move(*integers), standard_passes());
}

Expected<Model> read_model(const std::filesystem::path& path, const std::map<std::string, int64_t>& shapes,
                           const InferOptions& inference, std::string_view entry) {
  Model model{.context = std::make_unique<Context>(), .module = {}, .entry = {}, .name = path.stem().string()};
  model.entry = model.context->symbol(entry);
  if (path.extension() == ".onnx") {
    TENON_TRY_ASSIGN(module, load_onnx(*model.context, path, shapes));
    model.module = std::move(*module);
  } else if (path.extension() == ".tn" || path.extension() == ".tnb") {
    TENON_TRY_ASSIGN(module, load(*model.context, path, inference));
    model.module = std::move(*module);
    if (!shapes.empty()) {
      TENON_TRY_ASSIGN(bound, bind_shapes(*model.context, std::move(model.module), model.entry, shapes));
      model.module = std::move(*bound);
    }
  } else {
    return error(fmt::format("a model's file ends in .onnx, .tn or .tnb, not in \"{}\"", path.extension().string()),
                 path.string(), {}, Fault::kUsage);
  }
  return model;
}

Status check_entry(const Model& model, const std::string& where) {
  if (model.module.function(model.entry)) return {};
  std::vector<std::string> names;
  for_each_function(model.module, [&](Symbol symbol, const Function&) {
    names.push_back(fmt::format("@{}", model.context->name(symbol)));
  });
  return error(fmt::format("the module has no function @{}", model.context->name(model.entry)), where,
               names.empty() ? "it has no function" : fmt::format("there are {}", fmt::join(names, ", ")),
               Fault::kUsage);
}

Expected<Model> load_model(const std::filesystem::path& path, const std::map<std::string, int64_t>& shapes,
                           const PassOptions& passes, const InferOptions& inference, std::string_view entry) {
  TENON_TRY_ASSIGN(model, read_model(path, shapes, inference, entry));
  TENON_TRY(check_entry(*model, path.string()));
  make_main(*model);
  TENON_TRY_ASSIGN(simplified, run_passes(*model->context, std::move(model->module), standard_passes(), passes));
  model->module = std::move(*simplified);
  return model;
}

namespace {

// The sizes by the dims of the entry. An error where a bucket names no unknown size of it, or is out of its bounds.
Expected<std::vector<DimValues>> bucket_sizes(Context& context, const Module& module, Symbol entry,
                                              std::span<const std::map<std::string, int64_t>> buckets) {
  std::vector<DimValues> sizes;
  for (const auto& bucket : buckets) {
    TENON_TRY(bind_shapes(context, clone(module), entry, bucket));
    DimValues& values = sizes.emplace_back();
    for (const auto& [name, size] : bucket) values.emplace(*find_dim(context, *module.function(entry), name), size);
  }
  return sizes;
}

// Makes the units of batches of instances, which are functions of the module, and programs of the targets for those
// that compute the rows of all instances.
Expected<std::vector<Symbol>> make_batch_units(Context& context, Symbol entry, std::span<const Target> targets,
                                               const CompileOptions& options, Compilation& result) {
  TENON_TRY_ASSIGN(own, batch::own_inputs(context, *result.partitioned.function(entry), *options.batch));
  TENON_TRY_ASSIGN(special,
                   run_named(context, std::move(result.partitioned), {"specialize", "dead_code"}, options.passes));
  std::vector<Symbol> units;
  TENON_TRY_ASSIGN(module, run_step(context, std::move(*special), kMakeUnits, options.passes,
                                    [&](Context&, Module whole) -> Expected<Module> {
                                      batch::Units made = batch::make_units(context, std::move(whole), entry, *own);
                                      result.units = batch::explain(context, made);
                                      units = batch::release(made);
                                      for (const Symbol unit : units) {
                                        TENON_TRY_ASSIGN(parts, make_row_programs(context, made.module, unit, targets));
                                        if (!parts->empty()) result.notes += report(context, *parts);
                                      }
                                      return std::move(made.module);
                                    }));
  result.partitioned = std::move(*module);
  return units;
}

// The kernels of the planned function are made for their own memory, and once more when they are lowered.
Expected<MemoryPlans> plan_of_entry(Context& context, const Module& module, Symbol entry,
                                    const CompileOptions& options) {
  NativeKernels kernels(context, module, options.cpu);
  const int64_t threads = runtime::usable_processors();
  const Function& function = *module.function(entry);
  const LogOptions memory{
      .footprint = [](int64_t bytes) { return static_cast<int64_t>(runtime::BufferPool::footprint(bytes)); },
      .kernel_bytes = [&](const Binding& binding) -> std::optional<int64_t> {
        const Call* call = call_of(binding.value);
        const auto* name = call ? std::get_if<Symbol>(&call->callee) : nullptr;
        const Function* group = name ? module.function(*name) : nullptr;
        if (!options.cpu.native || (call && !group)) return std::nullopt;
        const auto made =
            group ? kernels.group(context.name(*name), *group) : kernels.operator_kernel(function, binding);
        if (!made) return std::nullopt;
        return loop::heap_bytes(kernels.functions()[made->kernel], threads);
      }};
  return plan_memory(context, module, function, *options.budget, memory);
}

// The bytes that a run of the code takes at most by the plan: inputs, the arena, results outside of it and the kernels'
// own memory. Nothing where other functions or reference kernels take part.
std::optional<int64_t> memory_bound(const runtime::Executable& code, const FunctionLog& step) {
  if (code.functions.size() != 1 || step.has_other_kernels) return std::nullopt;
  int64_t bytes = step.log.constant_bytes() + static_cast<int64_t>(code.main().arena_bytes);
  for (const uint32_t result : step.log.results) bytes += step.log.bytes[result];
  int64_t of_kernels = 0;
  for (const auto& call : step.log.calls) of_kernels = std::max(of_kernels, call.own_bytes);
  return bytes + of_kernels;
}

// Lowers the entry by the first plan, from the chosen one on, whose code keeps the budget. Where none does, which is an
// error if it is required, by the chosen one.
Expected<runtime::Executable> lower_within(Context& context, Module& module, Symbol entry,
                                           std::span<const Target> targets, const LowerOptions& lowering,
                                           const CompileOptions& options, MemoryPlans& plans) {
  const int64_t budget = *options.budget;
  const Function original = *module.function(entry);
  const auto lower_by = [&](size_t plan) -> Expected<runtime::Executable> {
    plans.chosen = plan;
    *module.function(entry) = original;
    if (plan > 0) {
      TENON_TRY_ASSIGN(planned, run_step(context, std::move(module), kRematerialize, options.passes,
                                         [&](Context&, Module whole) -> Expected<Module> {
                                           *whole.function(entry) =
                                               rematerialized(original, plans.step, plans.frontier[plan].order);
                                           return whole;
                                         }));
      module = std::move(*planned);
    }
    if (lowering.placements) lowering.placements->clear();
    if (lowering.gpu_functions) lowering.gpu_functions->clear();
    TENON_TRY_ASSIGN(code, lower(context, std::as_const(module), entry, targets, lowering));
    plans.bound = memory_bound(*code, plans.step);
    return code;
  };
  const size_t first = plans.chosen;
  for (size_t plan = first; plan < plans.frontier.size(); ++plan) {
    TENON_TRY_ASSIGN(code, lower_by(plan));
    if (std::max(plans.plan().peak, plans.bound.value_or(0)) <= budget) return code;
    if (!plans.bound) break;  // nor has another plan one
  }
  if (options.budget_required) return std::unexpected(beyond_budget(plans, budget));
  return lower_by(first);
}

// Leaves the constants to another module; their types stay.
void forget_constants(Module& module) { std::ranges::for_each(module.constants, &runtime::Tensor::drop_buffer); }

Status check_failures(std::span<const Target> targets) {
  for (const Target& target : targets) {
    if (auto failure = failure_of(target)) return std::unexpected(*std::move(failure));
  }
  return {};
}

// `consumed` is the model, or null.
Expected<Compilation> compile_for(std::span<const Target> targets, const Model& model, Model* consumed,
                                  const CompileOptions& options) {
  Context& context = *model.context;
  Compilation result;
  std::string numeric_types = "as in the model";
  const auto begin = [&](std::string_view stage) {
    if (options.progress) options.progress(stage);
  };
  const bool wants_integers = std::ranges::any_of(targets, &Target::integer_layers);
  if (options.calibration) {
    begin("calibrating");
    TENON_TRY_ASSIGN(way, quantize_model(model, wants_integers, options, result));
    numeric_types = fmt::format("int8, calibrated on {} samples by {}", options.calibration->size(), describe(*way));
  } else {
    TENON_TRY_ASSIGN(integers,
                     with_integer_layers(context, clone(model.module), wants_integers, &result.scales, options.passes));
    result.quantized = std::move(*integers);
  }
  begin("partitioning");
  const Stopwatch partition_time;
  result.partitioned = clone(result.quantized);
  if (!options.buckets.empty()) {
    TENON_TRY_ASSIGN(buckets, bucket_sizes(context, result.partitioned, model.entry, options.buckets));
    TENON_TRY_ASSIGN(copied, run_step(context, std::move(result.partitioned), kMakeBuckets, options.passes,
                                      [&](Context&, Module whole) -> Expected<Module> {
                                        TENON_TRY_ASSIGN(parts,
                                                         make_buckets(context, whole, model.entry, targets, *buckets));
                                        result.notes += report(context, *parts);
                                        return whole;
                                      }));
    result.partitioned = std::move(*copied);
  }
  std::vector<Symbol> units;
  if (options.batch) {
    TENON_TRY_ASSIGN(made, make_batch_units(context, model.entry, targets, options, result));
    units = std::move(*made);
  }
  if (options.costs) result.costs.emplace();
  TENON_TRY_ASSIGN(partitioned, run_step(context, std::move(result.partitioned), kPartition, options.passes,
                                         [&](Context&, Module whole) -> Expected<Module> {
                                           TENON_TRY_ASSIGN(
                                               placements,
                                               partition(context, whole, model.entry, targets,
                                                         {.costs = options.costs ? &*options.costs : nullptr,
                                                          .pins = options.pins,
                                                          .summary = result.costs ? &*result.costs : nullptr}));
                                           result.placements = std::move(*placements);
                                           return whole;
                                         }));
  TENON_TRY(check_failures(targets));
  result.partitioned = std::move(*partitioned);
  result.partition_seconds = partition_time.seconds();
  TENON_TRY_ASSIGN(kernels, run_passes(context, clone(result.partitioned), kernel_passes(), options.passes));
  result.kernels = std::move(*kernels);
  if (options.budget) {
    begin("planning memory");
    auto plans = plan_of_entry(context, result.kernels, model.entry, options);
    if (plans) result.memory = std::move(*plans);
    else if (options.budget_required) return std::unexpected(std::move(plans.error()));
  }
  if (options.kernels_only) return result;
  LowerOptions lowering{.name = model.name, .facts = {{"model", model.name}, {"numbers", numeric_types}}};
  if (!options.accelerators.empty()) {
    std::vector<std::string_view> names;
    for (const AcceleratorOptions& accelerator : options.accelerators) names.push_back(accelerator.config.name);
    lowering.facts.emplace_back("configuration", fmt::format("{}", fmt::join(names, ", ")));
  }
  std::vector<CpuPlacement> on_cpu;
  lowering.cpu = options.cpu;
  lowering.units = std::move(units);
  lowering.placements = &on_cpu;
  lowering.gpu_functions = &result.gpu_functions;
  if (options.keep_functions) lowering.cpu_functions = &result.cpu_functions;
  begin(targets.empty() ? "generating code" : "scheduling and generating code");
  const bool is_planned = result.memory && options.budget.value_or(0) > 0;
  if (is_planned) {
    TENON_TRY_ASSIGN(planned,
                     lower_within(context, result.kernels, model.entry, targets, lowering, options, *result.memory));
    result.executable = std::move(*planned);
  } else {
    if (consumed) {
      for (Module* module : {&consumed->module, &result.quantized, &result.partitioned}) forget_constants(*module);
    }
    TENON_TRY_ASSIGN(executable, consumed
                                     ? lower(context, std::move(result.kernels), model.entry, targets, lowering)
                                     : lower(context, std::as_const(result.kernels), model.entry, targets, lowering));
    result.executable = std::move(*executable);
  }
  name_kernels(result.placements, on_cpu);
  std::ranges::copy_if(on_cpu, std::back_inserter(result.interpreted), &CpuPlacement::interpreted);
  return result;
}

// The same for the targets of the options. One whose code generator fails on the way is left out from the beginning,
// where the options say so: it may have determined how the model is quantized and partitioned.
Expected<Compilation> compile(const Model& model, Model* consumed, const CompileOptions& options) {
  TENON_TRY_ASSIGN(targets,
                   make_targets(options.targets, options.accelerators,
                                {.fuse = options.fuse, .inexact = options.inexact, .schedules = options.cpu.schedules},
                                options.added_targets));
  std::string notes;
  for (;;) {
    const bool may_repeat = options.skip_failed_targets && std::ranges::any_of(*targets, [](const Target& target) {
                              return target.failure != nullptr;
                            });
    auto made = compile_for(*targets, model, may_repeat ? nullptr : consumed, options);
    const auto failed =
        std::ranges::find_if(*targets, [](const Target& target) { return failure_of(target).has_value(); });
    if (failed == targets->end()) {
      if (made) made->notes.insert(0, notes);
      // The target that was left out may be the reason, as of a pin to it.
      else if (!notes.empty()) made.error().help += (made.error().help.empty() ? "" : "\n") + notes;
      return made;
    }
    const Diagnostic why = *failure_of(*failed);
    if (!options.skip_failed_targets) return std::unexpected(why);
    notes += fmt::format("the model is compiled without the target {}\n{}\n", failed->name, why.str());
    targets->erase(failed);
  }
}

}  // namespace

Expected<Compilation> compile(const Model& model, const CompileOptions& options) {
  return compile(model, nullptr, options);
}

Expected<Compilation> compile(Model&& model, const CompileOptions& options) { return compile(model, &model, options); }

}  // namespace tenon::compiler
