// tenon bench accel: a whole model on accelerators: the cycles of a run on each device, beside those of the cycle model
// and the roofline of its layers.
#include <fmt/format.h>

#include "compiler/cli/explain_schedule.h"
#include "compiler/cli/model_options.h"
#include "compiler/cli/random_inputs.h"
#include "runtime/profile/analysis.h"
#include "runtime/run/runner.h"
#include "runtime/vm/session.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

// One run of the model on one device.
struct AcceleratorRun {
  std::string device;
  uint64_t cycles = 0, modeled = 0;  // of all launches, on the device and by the cycle model
  uint64_t roofline = 0;             // the sum of the layers'
  double utilization = 0;            // the model's MACs of those that the tensor core can do in these cycles
  double read_bytes = 0, write_bytes = 0;

  double model_error() const { return 100 * (static_cast<double>(modeled) / static_cast<double>(cycles) - 1); }
};

struct BenchAccel {
  ModelOptions model;
  std::vector<std::string> devices;
  bool json = false;

  Status run() {
    if (devices.empty()) devices.emplace_back("behavioral:default");
    model.quiet = true;
    model.for_this_machine = true;
    TENON_TRY_ASSIGN(loaded, load(model, {}, Sizes::kStatic));
    TENON_TRY_ASSIGN(ports, input_ports(loaded->model, Sizes::kStatic));
    TENON_TRY_ASSIGN(inputs, random_inputs(*ports, loaded->model.name));
    if (loaded->calibration.empty()) loaded->calibration.push_back(*inputs);
    std::vector<AcceleratorRun> rows;
    for (const std::string& device : devices) {
      TENON_TRY_ASSIGN(row, measure(*loaded, device, *inputs));
      rows.push_back(*std::move(row));
    }
    if (json) print_json(rows, loaded->model.name);
    else print(rows, loaded->model.name);
    return {};
  }

 private:
  Expected<AcceleratorRun> measure(LoadedModel& loaded, const std::string& device,
                                   const std::vector<runtime::Tensor>& inputs) {
    TENON_TRY_ASSIGN(accelerator, driver::open(device));
    const driver::Info* info = &(*accelerator)->info();
    TENON_TRY_ASSIGN(compiled, cli::compile(loaded, model, accelerators_of({&info, 1})));
    const runtime::Executable& executable = compiled->executable;
    if (executable.programs.empty()) {
      return error(fmt::format("no operator of the model runs on {}", device), loaded.model.name,
                   "tenon compile --explain has the reason for each of them");
    }
    TENON_TRY_ASSIGN(session, runtime::Session::create(executable, {.accelerators = {accelerator->get()}}));
    TENON_TRY(session->run(inputs));
    const runtime::Analysis analysis = runtime::analyze(executable, session->profile());
    AcceleratorRun row{.device = device,
                       .cycles = static_cast<uint64_t>(analysis.cycles),
                       .utilization = analysis.utilization,
                       .read_bytes = analysis.read_bytes,
                       .write_bytes = analysis.write_bytes};
    for (const runtime::AcceleratorProgram& program : executable.programs) {
      for (const LayerSchedule& layer : layer_schedules(program)) {
        row.modeled += layer.cycles;
        row.roofline += layer.roofline();
      }
    }
    return row;
  }

  static void print(const std::vector<AcceleratorRun>& rows, const std::string& name) {
    print_stdout("{}, a run\n{:<44} {:>11} {:>11} {:>7} {:>11} {:>7} {:>10} {:>10}\n", name, "device", "cycles",
                 "model", "error", "roofline", "of peak", "MB read", "written");
    for (const AcceleratorRun& row : rows) {
      print_stdout("{:<44} {:>11} {:>11} {:>+6.2f}% {:>11} {:>6.1f}% {:>10.2f} {:>10.2f}\n", row.device, row.cycles,
                   row.modeled, row.model_error(), row.roofline, 100 * row.utilization, row.read_bytes / 1e6,
                   row.write_bytes / 1e6);
    }
  }

  static void print_json(const std::vector<AcceleratorRun>& rows, const std::string& name) {
    Json out;
    out.begin_object().field("model", name).key("devices").begin_array();
    for (const AcceleratorRun& row : rows) {
      out.begin_object().field("device", row.device).field("cycles", row.cycles).field("modeled", row.modeled);
      out.field("roofline", row.roofline).field("utilization", row.utilization);
      out.field("read_bytes", row.read_bytes).field("write_bytes", row.write_bytes).end();
    }
    print_stdout("{}", out.end().end().str());
  }
};

}  // namespace

Action bench_accel(Options& options) {
  auto command = std::make_shared<BenchAccel>();
  command->model.declare(options);
  options.repeated(command->devices, "-d,--device", "URI",
                   "a device, as verilator:default?latency=200; may be repeated; default: behavioral:default");
  options.flag(command->json, "--json", "figures as JSON");
  options.footer(
      "Inputs are random, and so are the calibration samples, unless --calibrate has others: cycles do not depend on "
      "values.\ntenon bench accel resnet8.onnx --shapes N=1 --device behavioral:tiny --device verilator:tiny");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
