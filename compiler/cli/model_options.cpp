#include "compiler/cli/model_options.h"

#include <fmt/format.h>

#include "compiler/backends/llvm/compile.h"
#include "compiler/cli/data.h"
#include "compiler/cli/pass_options.h"
#include "compiler/frontend/onnx.h"
#include "compiler/tune/records.h"
#include "runtime/native/functions.h"
#include "runtime/native/native.h"

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
    if (auto status = runtime::open_functions(file); !status) return status;
  }
  return {};
}

Expected<LoadedModel> load(const ModelOptions& options, const compiler::PassOptions& passes) {
  if (auto status = open_libraries(options); !status) return forward_error(status);
  auto shapes = compiler::parse_shapes(options.shapes);
  if (!shapes) return forward_error(shapes);
  auto model = compiler::load_model(options.model, *shapes, passes, {.strict_shapes = options.strict_shapes});
  if (!model) return forward_error(model);
  LoadedModel loaded{std::move(*model), {}};
  if (options.calibration_data.empty()) return loaded;
  auto port = only_input(loaded.model);
  if (!port) return forward_error(port);
  auto batch = load_tensor(options.calibration_data);
  if (!batch) return forward_error(batch);
  auto samples = split_samples(*batch, *port, options.divide);
  if (!samples) return forward_error(samples);
  if (samples->empty())
    return error("there is no sample to calibrate with", options.calibration_data,
                 "give data like that which the model will see");
  for (runtime::Tensor& sample : *samples) loaded.calibration.push_back({std::move(sample)});
  return loaded;
}

Expected<compiler::Compilation> compile(const LoadedModel& loaded, const ModelOptions& options,
                                        const spec::Config* accelerator, bool keep_intermediates,
                                        const compiler::PassOptions& passes) {
  auto method = compiler::parse_calibration(options.method);
  if (!method) return forward_error(method);
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
      auto all = compiler::native::levels_of(options.target);
      if (!all) return forward_error(all);
      known = std::move(*all);
    }
    auto read = compiler::tune::read_choices(options.records, known);
    if (!read) return forward_error(read);
    choices = std::move(*read);
    for (const std::string& level : known) {
      auto own = compiler::tune::read_level_choices(options.records, level);
      if (!own) return forward_error(own);
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
