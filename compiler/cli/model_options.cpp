#include "compiler/cli/model_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "compiler/backends/llvm/compile.h"
#include "compiler/cli/data_sizes.h"
#include "compiler/cli/pass_options.h"
#include "compiler/cli/progress.h"
#include "compiler/frontend/onnx.h"
#include "compiler/targets/targets.h"
#include "compiler/tune/records.h"
#include "runtime/library/library.h"
#include "runtime/native/functions.h"
#include "runtime/native/native.h"
#include "runtime/run/samples.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::cli {

Status check_host_level(const std::string& level) {
  const auto levels = runtime::host_levels();
  if (level.empty() || std::ranges::find(levels, level) != levels.end()) return {};
  return error(fmt::format("this processor has no level '{}'", level), {},
               fmt::format("it has {}", fmt::join(levels, ", ")), Fault::kUsage);
}

namespace {

// "dnnl (oneDNN; f32)" for each target, for the help.
std::vector<std::string> described_targets() {
  std::vector<std::string> texts;
  for (const compiler::TargetRecord& record : compiler::target_records())
    texts.push_back(fmt::format("{} ({}{})", record.name, record.documentation,
                                record.of_configuration ? "; the first if it is not named" : ""));
  return texts;
}

}  // namespace

void ModelOptions::declare(Options& options, Records kind) {
  constexpr std::string_view kModel = "the model: .onnx, .tn or .tnb";
  if (kind == Records::kTuned) options.optional_argument(model, "MODEL", kModel);
  else options.argument(model, "MODEL", kModel);
  options.repeated(shapes, "--shapes", "NAME=SIZE,...",
                   "values of the model's unknown sizes; given twice or more, these stay unknown, and the accelerator "
                   "has a program for each of the given sizes, the CPU computes at all others");
  options.flag(strict_shapes, "--strict-shapes",
               "in a .tn model, sizes that are not proved to fit are an error instead of a check at run time");
  QuantizationOptions::declare(options);
  options.option(
      memory, "--memory", "READ/WRITE",
      "latencies of the accelerator's memory in its cycles, which programs are scheduled for, as 200/200; "
      "or READ/WRITE/OUTSTANDING, with the bursts that it accepts at a time; default: the device's, or 60/40/16");
  options.flag(no_fuse, "--no-fuse",
               "each layer on the accelerator stores its results in memory, where they can be compared; otherwise "
               "values between a depthwise convolution and pointwise ones stay on the chip where this is faster");
  options.option(divide, "--divide", "D", "divide all data by this, as 255 for bytes", {});
  options.choice(kernels, "--kernels", {"native", "reference"},
                 "kernels of the CPU: machine code, or the reference kernels that define the operators");
  options.flag(ahead_of_time, "--ahead-of-time",
               "compile the code between the kernels too: control flow and scalars become machine code");
  options.choice(
      fallback, "--fallback", {"interpreter", "none"},
      "what computes an operator that has no native kernel: the interpreter's kernel, and a line says so, which is the "
      "default; or nothing, so that it is an error. interpreter: so is a model whose plugin fails, without the plugin");
  options.option(targets, "--targets", "NAME,...",
                 fmt::format("who computes an operator: the first that supports it, of {}, cpu (the last); of several "
                             "accelerators, each is named with its configuration, as accel:tiny",
                             fmt::join(described_targets(), ", ")));
  if (kind != Records::kTuned) {
    options.option(
        costs, "--costs", "FILE",
        "figures of the machine that runs the model, as tenon tune --costs measures them: operators are where "
        "the estimated time is least, instead of on the first target that supports them");
    options.choice(
        placement, "--placement", {"cost", "order"},
        "where operators are: by cost, which requires --costs and is the default with it, or by the order of "
        "the targets");
  }
  options.repeated(pins, "--pin", "NODE=TARGET", "the node of the model is on this target, or on cpu; may be repeated");
  options.option(inexact, "--inexact", "TYPES",
                 "factors whose products a GPU's tensor cores may add in any order, with a bounded error: f16, bf16, "
                 "and tf32, for f32 rounded to 11 bits; as f16,bf16");
  options.option(schedule, "--schedule", "FILE",
                 "steps of your own for the kernels of operators, as tenon schedule -o writes them");
  options.option(libraries, "--library", "FILE",
                 "shared object whose functions the model calls by name (runtime/native/kernel.h); may be repeated");
  plugins.declare(options);
  if (kind == Records::kTuned) options.option(records, "--records", "FILE", "file of the measurements");
  else options.option(records, "--records", "FILE", "use the kernels that tenon tune measured to be fastest");
}

Expected<std::vector<runtime::Port>> input_ports(const compiler::Model& model, Sizes sizes) {
  const compiler::Function& main = model.main();
  std::vector<runtime::Port> ports;
  for (const compiler::VarId param : main.params) {
    std::string name(model.context->name(main.info(param).name));
    const auto* type = main.type(param).tensor();
    const std::string text = model.context->str(main.type(param));
    if (!type) {
      return error(fmt::format("input {} is {}: only tensors can be given", name, text), model.name,
                   "write a function that builds the input from tensors", Fault::kUsage);
    }
    if (sizes == Sizes::kStatic && !type->shape()) {
      return error(fmt::format("input {} is {}: a size is unknown", name, text), model.name,
                   "the data does not determine it; bind it, as --shapes N=1", Fault::kUsage);
    }
    runtime::Port port{.name = std::move(name), .dtype = type->dtype, .shape = {}, .symbols = {}, .type = {}};
    for (const compiler::Dim dim : type->dims) {
      port.shape.push_back(dim.constant().value_or(runtime::kAnySize));
      port.symbols.push_back(dim.constant() ? "" : model.context->str(dim));
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

Status open_libraries(const ModelOptions& options) {
  for (const std::string& file : options.libraries) {
    TENON_TRY(runtime::open_functions(file));
  }
  return {};
}

namespace {

bool has_unknown_sizes(const compiler::Model& model) {
  return std::ranges::any_of(model.main().params, [&](compiler::VarId param) {
    const auto* type = model.main().type(param).tensor();
    return type && !type->shape();
  });
}

// None where the sizes are bound.
Expected<std::vector<std::map<std::string, int64_t>>> bucket_shapes(const ModelOptions& options) {
  std::vector<std::map<std::string, int64_t>> buckets;
  if (options.shapes.size() < 2) return buckets;
  for (const std::string& text : options.shapes) {
    TENON_TRY_ASSIGN(sizes, compiler::parse_shapes(text));
    buckets.push_back(std::move(*sizes));
  }
  return buckets;
}

}  // namespace

Sizes sizes_of_inputs(const ModelOptions& options, bool has_accelerator) {
  return has_accelerator && options.shapes.size() < 2 ? Sizes::kStatic : Sizes::kAny;
}

namespace {

// What data tell of a model; empty functions: there are no data.
struct Data {
  std::function<Expected<std::map<std::string, int64_t>>(const compiler::Model&)> sizes;
  std::function<Expected<compiler::Samples>(const compiler::Model&)> calibration;
  std::string where;  // of the calibration
};

Expected<LoadedModel> load(const ModelOptions& options, const compiler::PassOptions& passes, Sizes sizes,
                           const Data& data) {
  TENON_TRY(open_libraries(options));
  TENON_TRY(bucket_shapes(options));
  TENON_TRY_ASSIGN(shapes, compiler::parse_shapes(options.shapes.size() == 1 ? options.shapes[0] : ""));
  const auto read = [&] {
    return compiler::load_model(options.model, *shapes, passes, {.strict_shapes = options.strict_shapes},
                                options.entry);
  };
  TENON_TRY_ASSIGN(model, read());
  if (sizes == Sizes::kStatic && data.sizes && has_unknown_sizes(*model)) {
    TENON_TRY_ASSIGN(found, data.sizes(*model));
    std::vector<std::string> text;
    for (const auto& [name, size] : *found) text.push_back(fmt::format("{}={}", name, size));
    if (!options.quiet && !text.empty()) print_stderr("{}: sizes by the data: {}\n", model->name, fmt::join(text, ","));
    shapes->merge(*found);
    TENON_TRY_ASSIGN(bound, read());
    model = std::move(*bound);
  }
  LoadedModel loaded{std::move(*model), {}};
  if (!data.calibration) return loaded;
  TENON_TRY_ASSIGN(samples, data.calibration(loaded.model));
  if (samples->empty())
    return error("there is no sample to calibrate with", data.where, "give data like the data that the model will see");
  loaded.calibration = std::move(*samples);
  return loaded;
}

}  // namespace

Expected<LoadedModel> load(const ModelOptions& options, const compiler::PassOptions& passes, Sizes sizes,
                           std::span<const std::string> data) {
  const std::span<const std::string> calibration = options.calibration_data;
  if (!calibration.empty()) data = calibration;
  Data source{.sizes = {}, .calibration = {}, .where = fmt::format("{}", fmt::join(calibration, ", "))};
  if (!data.empty()) source.sizes = [data](const compiler::Model& model) { return sizes_of_data(model, data); };
  if (!calibration.empty()) {
    source.calibration = [&options, calibration, sizes](const compiler::Model& model) -> Expected<compiler::Samples> {
      TENON_TRY_ASSIGN(ports, input_ports(model, sizes));
      return runtime::read_samples(*ports, calibration, options.divide, model.name);
    };
  }
  return load(options, passes, sizes, source);
}

Expected<LoadedModel> load_calibrated(const ModelOptions& options, Sizes sizes, std::span<const runtime::Tensor> data,
                                      const std::string& where) {
  const Data source{.sizes = [data](const compiler::Model& model) { return sizes_of_data(model, data); },
                    .calibration = [&](const compiler::Model& model) -> Expected<compiler::Samples> {
                      TENON_TRY_ASSIGN(ports, input_ports(model, sizes));
                      return runtime::split_inputs(*ports, data, options.divide, where, model.name);
                    },
                    .where = where};
  return load(options, {}, sizes, source);
}

namespace {

// The operators without a native kernel, by their nodes: a list for people, or an error.
Status report_fallback(const ModelOptions& options, const compiler::Compilation& compiled) {
  if (compiled.interpreted.empty()) return {};
  std::vector<std::string> texts;
  for (const compiler::CpuPlacement& placement : compiled.interpreted) {
    const std::string node = compiled.partitioned.span(placement.span).str();
    texts.push_back(fmt::format("{}{}{}: {}", node, node.empty() ? "" : ": ", placement.op, placement.reason));
  }
  if (options.fallback == "none")
    return error(fmt::format("operators without a native kernel: {}", fmt::join(texts, "; ")), options.model,
                 "--fallback interpreter computes them by the interpreter's kernels", Fault::kUsage);
  if (!options.quiet) print_stderr("by the interpreter's kernels, which are slow:\n  {}\n", fmt::join(texts, "\n  "));
  return {};
}

Expected<std::vector<compiler::schedules::UserSchedule>> read_schedules(const ModelOptions& options) {
  std::vector<compiler::schedules::UserSchedule> none;
  if (options.schedule.empty()) return none;
  if (options.kernels != "native")
    return error("--schedule is for native kernels, and --kernels reference makes none", {}, "omit one of the two",
                 Fault::kUsage);
  TENON_TRY_ASSIGN(text, read_text(options.schedule));
  return compiler::schedules::parse_schedules(*text, options.schedule);
}

}  // namespace

Expected<compiler::Machine::Inexact> parse_inexact(const ModelOptions& options) {
  compiler::Machine::Inexact inexact;
  for (const std::string& name : split(options.inexact)) {
    if (name == "f16") inexact.f16 = true;
    else if (name == "bf16") inexact.bf16 = true;
    else if (name == "tf32") inexact.tf32 = true;
    else
      return error(fmt::format("--inexact: '{}' has no inexact products", name), {}, "expected f16, bf16 or tf32",
                   Fault::kUsage);
  }
  return inexact;
}

namespace {

// The plugins of a compilation.
struct OpenedPlugins {
  std::vector<compiler::TargetRecord> records;
  std::vector<std::string> left_out;  // names of the targets of others
  std::string notes;                  // why
};

// The names of --targets. The CPU supports every operator: it may be named as the last, and is not in the result; nor
// are targets that were left out.
Expected<std::vector<std::string>> parse_targets(const ModelOptions& options,
                                                 std::span<const compiler::AcceleratorOptions> accelerators,
                                                 const OpenedPlugins& plugins) {
  TENON_TRY_ASSIGN(records, compiler::with_targets(plugins.records, accelerators));
  std::vector<std::string> targets = split(options.targets);
  std::erase_if(targets, [&](const std::string& name) {
    return std::ranges::find(plugins.left_out, name) != plugins.left_out.end() &&
           !compiler::find_target(name, *records);
  });
  std::set<std::string_view> seen;
  for (const std::string& name : targets) {
    const compiler::TargetRecord* record = compiler::find_target(name, *records);
    if (!record && name != "cpu")
      return error(fmt::format("--targets: there is no target '{}'", name), {},
                   fmt::format("the targets are {}, cpu", fmt::join(compiler::target_names(*records), ", ")),
                   Fault::kUsage);
    if (!seen.insert(name).second) return error(fmt::format("--targets names '{}' twice", name), {}, {}, Fault::kUsage);
    if (!record) continue;
    if (record->of_configuration && accelerators.empty())
      return error(fmt::format("--targets {} requires an accelerator", name), {}, "--config or --device select it",
                   Fault::kUsage);
    if (record->native && options.kernels != "native")
      return error(fmt::format("--targets {} requires native kernels, and --kernels reference makes none", name), {},
                   "omit one of the two", Fault::kUsage);
    if (seen.contains(record->excludes))
      return error(fmt::format("--targets names both {} and {}", record->excludes, name), {}, "omit one of the two",
                   Fault::kUsage);
  }
  if (!seen.contains("cpu")) return targets;
  if (targets.back() != "cpu")
    return error("--targets: the CPU supports every operator, so that targets after it would have none", {},
                 "name cpu last", Fault::kUsage);
  targets.pop_back();
  return targets;
}

// The targets of the plugins, whose kernels are those of their files from now on. With --fallback interpreter, those
// that are wrong, or cannot be opened beside others, are left out, with a note.
Expected<OpenedPlugins> open_plugins(const ModelOptions& options) {
  OpenedPlugins plugins{.records = {}, .left_out = options.plugins.left_out, .notes = {}};
  for (const std::string& file : options.plugins.files) {
    auto record = compiler::plugin::open(file, options.plugins.limits());
    const Status used = record ? runtime::use_library(file) : std::unexpected(record.error());
    if (used) {
      plugins.records.push_back(*std::move(record));
      continue;
    }
    if (options.fallback != "interpreter") return std::unexpected(used.error());
    plugins.left_out.push_back(runtime::library_name(file));
    plugins.notes += fmt::format("the model is compiled without a plugin\n{}\n", used.error().str());
  }
  if (!options.quiet) print_stderr("{}", plugins.notes);
  return plugins;
}

// nullopt: by the order of the targets.
Expected<std::optional<compiler::Costs>> placement_costs(const ModelOptions& options) {
  if (options.placement == "cost" && options.costs.empty()) {
    return error("--placement cost requires --costs: whose time is meant?", {},
                 "tenon tune --costs FILE measures this machine's figures", Fault::kUsage);
  }
  std::optional<compiler::Costs> costs;
  if (options.costs.empty() || options.placement == "order") return costs;
  TENON_TRY_ASSIGN(read, compiler::read_costs(options.costs));
  costs = *std::move(read);
  return costs;
}

Expected<compiler::Pins> parse_pins(const ModelOptions& options) {
  compiler::Pins pins;
  for (const std::string& pin : options.pins) {
    const size_t sign = pin.rfind('=');
    if (sign == std::string::npos || sign == 0 || sign + 1 == pin.size()) {
      return error(fmt::format("--pin '{}' must be NODE=TARGET", pin), {}, "as --pin /fc/Gemm=cpu", Fault::kUsage);
    }
    if (!pins.emplace(pin.substr(0, sign), pin.substr(sign + 1)).second)
      return error(fmt::format("--pin names {} twice", pin.substr(0, sign)), {}, {}, Fault::kUsage);
  }
  return pins;
}

// --memory is that of all accelerators.
Status set_memory(const ModelOptions& options, std::span<compiler::AcceleratorOptions> accelerators) {
  if (options.memory.empty()) return {};
  if (accelerators.empty()) {
    return error("--memory is about the memory of an accelerator, and there is none", {},
                 "--config or --device select one; omit --memory for code of the CPU", Fault::kUsage);
  }
  TENON_TRY_ASSIGN(memory, spec::parse_memory_timing("--memory", options.memory));
  for (compiler::AcceleratorOptions& accelerator : accelerators) accelerator.memory = *memory;
  return {};
}

}  // namespace

Expected<std::vector<compiler::AcceleratorOptions>> load_accelerators(const std::string& configs) {
  std::vector<compiler::AcceleratorOptions> accelerators;
  for (const std::string& name : split_all(configs)) {
    if (name.empty()) {
      return error(fmt::format("--config '{}' has an empty entry", configs), {},
                   "give names or .json files of configurations, joined by commas, as default,tiny", Fault::kUsage);
    }
    TENON_TRY_ASSIGN(config, spec::load_config(name));
    accelerators.push_back({.config = *std::move(config)});
  }
  TENON_TRY(compiler::check_accelerators(accelerators));
  return accelerators;
}

std::vector<compiler::AcceleratorOptions> accelerators_of(std::span<const driver::Info* const> devices) {
  std::vector<compiler::AcceleratorOptions> accelerators;
  for (const driver::Info* device : devices) accelerators.push_back({device->config, device->memory});
  return accelerators;
}

void return_freed_memory() {
  constexpr int kLargeBlock = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargeBlock);
}

Expected<compiler::Compilation> compile(LoadedModel& loaded, const ModelOptions& options,
                                        std::vector<compiler::AcceleratorOptions> accelerators,
                                        const compiler::PassOptions& passes) {
  TENON_TRY_ASSIGN(plugins, open_plugins(options));
  TENON_TRY_ASSIGN(targets, parse_targets(options, accelerators, *plugins));
  TENON_TRY_ASSIGN(inexact, parse_inexact(options));
  std::vector<std::string> levels = split(options.levels);
  if (options.for_this_machine && !runtime::host_levels().empty()) levels.emplace_back(runtime::host_levels().front());
  compiler::kernels::KnobLookup knobs;
  std::map<std::string, compiler::kernels::KnobLookup> level_knobs;
  if (!options.records.empty()) {
    std::vector<std::string> recorded = levels;
    if (recorded.empty()) {
      TENON_TRY_ASSIGN(all_levels, compiler::native::levels_of(options.target));
      recorded = std::move(*all_levels);
    }
    TENON_TRY_ASSIGN(read, compiler::tune::read_knobs(options.records, recorded));
    knobs = std::move(*read);
    for (const std::string& level : recorded) {
      TENON_TRY_ASSIGN(knobs_of_level, compiler::tune::read_level_knobs(options.records, level));
      level_knobs.emplace(level, std::move(*knobs_of_level));
    }
  }
  TENON_TRY_ASSIGN(schedules, read_schedules(options));
  TENON_TRY_ASSIGN(buckets, bucket_shapes(options));
  if (!buckets->empty() && accelerators.empty() && targets->empty() && plugins->records.empty()) {
    return error("several --shapes are the sizes of an accelerator's programs, and there is no accelerator", {},
                 "code for the CPU runs at any size: omit them, or give one that binds the sizes", Fault::kUsage);
  }
  TENON_TRY_ASSIGN(costs, placement_costs(options));
  TENON_TRY_ASSIGN(pins, parse_pins(options));
  TENON_TRY(set_memory(options, accelerators));
  compiler::CompileOptions compile_options{.accelerators = std::move(accelerators),
                                           .fuse = !options.no_fuse,
                                           .targets = std::move(*targets),
                                           .added_targets = std::move(plugins->records),
                                           .skip_failed_targets = options.fallback == "interpreter",
                                           .costs = std::move(*costs),
                                           .pins = std::move(*pins),
                                           .inexact = *inexact,
                                           .buckets = std::move(*buckets),
                                           .calibration = loaded.calibration.empty() ? nullptr : &loaded.calibration,
                                           .batch = options.batch,
                                           .cpu = {.native = options.kernels == "native",
                                                   .triple = options.target,
                                                   .levels = levels,
                                                   .knobs = std::move(knobs),
                                                   .level_knobs = std::move(level_knobs),
                                                   .schedules = std::move(*schedules),
                                                   .ahead_of_time = options.ahead_of_time},
                                           .passes = passes,
                                           .progress = {}};
  TENON_TRY(options.apply(compile_options, !loaded.calibration.empty()));
  std::optional<StageLine> line(std::in_place, options.quiet);
  std::optional<Progress> bar;
  compile_options.kernels_only = options.kernels_only;
  compile_options.keep_functions = options.keep_functions;
  compile_options.budget = options.budget;
  compile_options.progress = [&](std::string_view stage) {
    bar.reset();
    line->show(fmt::format("{}: {}", loaded.model.name, stage));
  };
  compile_options.calibrate.progress = [&](std::string_view step, size_t done, size_t total) {
    if (done == 0) bar.emplace(fmt::format("{}: {}", loaded.model.name, step), total, options.quiet);
    else bar->step();
  };
  auto compiled = options.executable_only ? compiler::compile(std::move(loaded.model), compile_options)
                                          : compiler::compile(std::as_const(loaded.model), compile_options);
  if (!compiled) return compiled;
  bar.reset(), line.reset();
  if (!options.quiet) print_stderr("{}", compiled->notes);
  compiled->notes.insert(0, plugins->notes);
  TENON_TRY(report_fallback(options, *compiled));
  return compiled;
}

}  // namespace tenon::cli
