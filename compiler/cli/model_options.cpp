#include "compiler/cli/model_options.h"

#include <fmt/format.h>

#include "compiler/backends/llvm/compile.h"
#include "compiler/cli/data.h"
#include "compiler/cli/pass_options.h"
#include "compiler/frontend/onnx.h"
#include "compiler/tune/records.h"
#include "runtime/native/functions.h"
#include "runtime/native/native.h"
#include "support/try.h"

namespace tenon::cli {

void ModelOptions::declare(Options& options, Records kind) {
  options.argument(model, "MODEL", "the model: .onnx, .tn or .tnb");
  options.option(shapes, "--shapes", "NAME=SIZE,...", "values of the model's unknown sizes");
  options.flag(strict_shapes, "--strict-shapes",
               "in a .tn model, sizes that are not proved to fit are an error, not a check at run time");
  options.option(calibration_data, "--calibrate", "FILE",
                 "quantize to int8 with these samples: FILE.npy or FILE.npz:NAME");
  options.choice(method, "--calibration", {"minmax", "percentile"}, "how ranges are taken from the samples");
  options.option(percentile, "--percentile", "P", "share of the values that --calibration percentile keeps");
  options.flag(symmetric, "--symmetric", "activations without zero points");
  options.option(divide, "--divide", "D", "divide all data by this, as 255 for bytes");
  options.choice(kernels, "--kernels", {"native", "reference"},
                 "what computes on the CPU: machine code, or the kernels that define the operators");
  options.option(targets, "--targets", "NAME,...",
                 "libraries that compute what they can before our kernels do: dnnl (oneDNN; f32)");
  options.option(libraries, "--library", "FILE",
                 "a shared object whose functions the model calls by name (runtime/native/kernel.h); again for more");
  if (kind == Records::kNeeded) options.required(records, "--records", "FILE", "where measurements are kept");
  else options.option(records, "--records", "FILE", "native kernels as tenon tune has measured them to be fastest");
}

Expected<runtime::Port> only_input(const compiler::Model& model) {
  const compiler::Function& main = model.main();
  if (main.params.size() != 1) {
    return error(fmt::format("the model has {} inputs; data for exactly one can be given here", main.params.size()),
                 model.name);
  }
  const std::string name(model.context->name(main.info(main.params[0]).name));
  const auto* type = main.type(main.params[0]).tensor();
  const auto shape = type ? type->shape() : std::nullopt;
  if (!shape) {
    return error(fmt::format("input {} is {}: a size is unknown", name, model.context->str(main.type(main.params[0]))),
                 model.name, "bind it, as --shapes N=1", Fault::kUsage);
  }
  return runtime::Port{name, type->dtype, *shape};
}

Status open_libraries(const ModelOptions& options) {
  for (const std::string& file : options.libraries) {
    TENON_TRY(runtime::open_functions(file));
  }
  return {};
}

Expected<LoadedModel> load(const ModelOptions& options, const compiler::PassOptions& passes) {
  TENON_TRY(open_libraries(options));
  TENON_TRY_ASSIGN(shapes, compiler::parse_shapes(options.shapes));
  TENON_TRY_ASSIGN(model,
                   compiler::load_model(options.model, *shapes, passes, {.strict_shapes = options.strict_shapes}));
  LoadedModel loaded{std::move(*model), {}};
  if (options.calibration_data.empty()) return loaded;
  TENON_TRY_ASSIGN(port, only_input(loaded.model));
  TENON_TRY_ASSIGN(batch, load_tensor(options.calibration_data));
  TENON_TRY_ASSIGN(samples, split_samples(*batch, *port, options.divide));
  if (samples->empty())
    return error("there is no sample to calibrate with", options.calibration_data,
                 "give data like that which the model will see");
  for (runtime::Tensor& sample : *samples) loaded.calibration.push_back({std::move(sample)});
  return loaded;
}

Expected<compiler::Compilation> compile(const LoadedModel& loaded, const ModelOptions& options,
                                        const spec::Config* accelerator, bool keep_intermediates,
                                        const compiler::PassOptions& passes) {
  TENON_TRY_ASSIGN(method, compiler::parse_calibration(options.method));
  bool dnnl = false;
  for (const std::string& name : split(options.targets)) {
    if (name != "dnnl") {
      return error(fmt::format("--targets: there is no target '{}'", name), {},
                   "there is dnnl; the accelerator is chosen by --config or --device", Fault::kUsage);
    }
    dnnl = true;
  }
  std::vector<std::string> levels = split(options.levels);
  if (options.for_this_machine && !runtime::host_levels().empty()) levels.emplace_back(runtime::host_levels().front());
  compiler::kernels::Choices choices;
  std::map<std::string, compiler::kernels::Choices> level_choices;
  if (!options.records.empty()) {
    std::vector<std::string> known = levels;
    if (known.empty()) {
      TENON_TRY_ASSIGN(all, compiler::native::levels_of(options.target));
      known = std::move(*all);
    }
    TENON_TRY_ASSIGN(read, compiler::tune::read_choices(options.records, known));
    choices = std::move(*read);
    for (const std::string& level : known) {
      TENON_TRY_ASSIGN(own, compiler::tune::read_level_choices(options.records, level));
      level_choices.emplace(level, std::move(*own));
    }
  }
  compiler::CompileOptions compile_options{.accelerator = accelerator ? std::optional(*accelerator) : std::nullopt,
                                           .dnnl = dnnl,
                                           .calibration = loaded.calibration.empty() ? nullptr : &loaded.calibration,
                                           .calibrate = {.method = *method, .percentile = options.percentile},
                                           .quantize = {.symmetric = options.symmetric},
                                           .keep_intermediates = keep_intermediates,
                                           .cpu = {.native = options.kernels == "native",
                                                   .triple = options.target,
                                                   .levels = levels,
                                                   .choices = std::move(choices),
                                                   .level_choices = std::move(level_choices)},
                                           .passes = passes};
  return compiler::compile(loaded.model, compile_options);
}

}  // namespace tenon::cli
