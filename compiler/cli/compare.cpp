// tenon compare: float, quantized and device side by side, layer by layer, over samples without labels.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/cli/command.h"
#include "compiler/cli/model_options.h"
#include "compiler/cli/progress.h"
#include "compiler/pipeline/layer_errors.h"
#include "runtime/run/results.h"
#include "runtime/run/runner.h"
#include "runtime/run/samples.h"
#include "support/file.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct CompareCommand {
  ModelOptions model;
  std::vector<std::string> data;
  std::vector<std::string> devices;
  std::string report;
  int64_t limit = 20;
  bool json = false, quiet = false;

  Status check_options() const {
    if (data.empty())
      return error("--data is required", "tenon compare",
                   "samples for the model's inputs: [NAME=]FILE.npy or FILE.npz:MEMBER", Fault::kUsage);
    std::vector<std::string> inputs{model.model};
    inputs.insert(inputs.end(), data.begin(), data.end());
    return runtime::check_output(report, "--report", inputs);
  }

  Status run() {
    TENON_TRY(check_options());
    model.quiet = quiet;
    const Sizes sizes = sizes_of_inputs(model, true);
    TENON_TRY_ASSIGN(loaded, load(model, {}, sizes, data));
    TENON_TRY_ASSIGN(ports, input_ports(loaded->model, sizes));
    TENON_TRY_ASSIGN(samples, runtime::read_samples(*ports, data, model.divide, loaded->model.name));
    if (limit > 0) samples->resize(std::min(samples->size(), static_cast<size_t>(limit)));
    if (devices.empty()) devices.emplace_back("behavioral:default");
    TENON_TRY_ASSIGN(opened, runtime::open_devices(devices));
    model.for_this_machine = true;
    TENON_TRY_ASSIGN(compiled,
                     cli::compile(*loaded, model, accelerators_of(runtime::infos(runtime::accelerators(*opened)))));
    TENON_TRY_ASSIGN(errors, compiler::LayerErrors::create(loaded->model, *compiled));
    runtime::SessionOptions options;
    options.accelerators = runtime::used_accelerators(compiled->executable, *opened);
    options.hook = errors->hook();
    TENON_TRY_ASSIGN(session, runtime::Session::create(compiled->executable, std::move(options)));
    Progress progress("comparing", samples->size(), quiet);
    for (const runtime::Sample& sample : *samples) {
      TENON_TRY(errors->add(sample));
      TENON_TRY(session->run(sample));
      progress.step();
    }
    return show(*errors, loaded->model.name, samples->size());
  }

  std::string on_devices() const { return fmt::format("{}", fmt::join(devices, ", ")); }

  Status show(const compiler::LayerErrors& errors, const std::string& name, size_t samples) const {
    if (!report.empty())
      TENON_TRY(write_file(report, errors.html(fmt::format("{}: float, int8 and {}", name, on_devices()))));
    const auto bad = errors.first_bad();
    if (json) {
      Json out;
      out.begin_object().field("samples", samples).key("layers").begin_array();
      for (const compiler::LayerError& layer : errors.layers()) {
        if (layer.elements == 0) continue;
        out.begin_object()
            .field("name", layer.name)
            .field("decibels", layer.snr())
            .field("worst_steps", layer.worst)
            .field("clipped", layer.clipped);
        if (layer.on_device)
          out.field("device_decibels", layer.device_snr()).field("device_differing", layer.device_differing);
        out.end();
      }
      out.end().field("first_bad", bad ? errors.layers()[*bad].name : "").field("suggestion", errors.suggestion());
      print_stdout("{}", out.end().str());
      return {};
    }
    print_stdout("{} over {} samples: int8 and {} against the model's own arithmetic\n{}\n{}\n", name, samples,
                 on_devices(), errors.table(), errors.suggestion());
    if (!report.empty()) print_stdout("Report: {}\n", report);
    return {};
  }
};

}  // namespace

Action compare_model(Options& options) {
  auto command = std::make_shared<CompareCommand>();
  command->model.declare(options);
  options.repeated(command->devices, "--device", "URI",
                   "device of the accelerator programs, as of tenon run; default: behavioral:default");
  options.repeated(command->data, "--data", "[NAME=]FILE",
                   "samples for an input, as of tenon run; no labels are needed");
  options.option(command->limit, "--limit", "N", "only the first N samples; 0: all", {.least = 0});
  options.option(command->report, "--report", "FILE.html", "write the table as a self-contained page");
  options.flag(command->json, "--json", "figures as JSON");
  options.flag(command->quiet, "--quiet", "no progress bar");
  options.footer("tenon compare model.onnx --shapes N=1 --calibrate d.npz:calib --data d.npz:x --divide 255");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
