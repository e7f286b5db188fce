// tenon compile: a model into an executable file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/backends/llvm/compile.h"
#include "compiler/cli/explain_schedule.h"
#include "compiler/cli/model_options.h"
#include "compiler/cli/pass_options.h"
#include "compiler/ir/text.h"
#include "runtime/run/results.h"
#include "support/file.h"
#include "support/json.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

// Where each operator runs, and why; where targets are assigned by cost, what it costs on each, in seconds, and the
// source of the figure.
void write_operators(Json& out, const compiler::Compilation& compiled) {
  out.key("operators").begin_array();
  for (const compiler::Placement& placement : compiled.placements) {
    out.begin_object()
        .field("node", compiled.partitioned.span(placement.span).node)
        .field("op", placement.op)
        .field("target", placement.target.empty() ? "cpu" : placement.target);
    if (!placement.composite.empty()) out.field("composite", placement.composite);
    if (!placement.kernel.empty()) out.field("kernel", placement.kernel);
    if (!placement.reason.empty()) out.field("reason", placement.reason);
    if (!placement.prices.empty()) {
      out.key("prices").begin_object();
      for (const auto& [target, price, change] : placement.prices) {
        out.key(target).begin_object().field("seconds", price.seconds).field("source", price.source);
        if (change) out.field("total_change", *change);
        out.end();
      }
      out.end();
    }
    out.end();
  }
  out.end();
}

struct CompileCommand {
  ModelOptions model;
  PassFlags passes;
  std::string output, config = "default", print, budget;
  std::vector<std::string> shared;
  bool cpu = false, explain = false, explain_schedules = false, json = false, batch = false;

  // Before any work: whether there is such a machine.
  Status check_target() const {
    if (model.kernels == "reference" && !(model.target.empty() && model.levels.empty())) {
      return error("--target and --levels are about native code, and --kernels reference makes none", {},
                   "a file without native code runs on every machine", Fault::kUsage);
    }
    TENON_TRY_ASSIGN(supported, compiler::native::levels_of(model.target));
    for (const std::string& level : split(model.levels)) {
      if (std::ranges::find(*supported, level) != supported->end()) continue;
      return error(fmt::format("--levels: there is no level '{}'", level), model.target,
                   fmt::format("the levels are {}", fmt::join(*supported, ", ")), Fault::kUsage);
    }
    return {};
  }

  Status run() {
    if (json && (explain || explain_schedules || !print.empty() || passes.prints())) {
      return error("--json prints figures only, the options that print modules and reasons print text", {},
                   "give one of them", Fault::kUsage);
    }
    if (!batch && !shared.empty()) {
      return error("--shared is for the instances of --batch", model.model, "add --batch", Fault::kUsage);
    }
    if (batch) model.batch = shared;
    if (!budget.empty()) {
      TENON_TRY_ASSIGN(bytes, read_bytes("--budget", budget));
      model.budget = static_cast<int64_t>(*bytes);
    }
    TENON_TRY(check_target());
    std::vector<std::string> inputs{model.model, model.records};
    inputs.insert(inputs.end(), model.calibration_data.begin(), model.calibration_data.end());
    TENON_TRY(runtime::check_output(output, "--output", inputs));
    TENON_TRY_ASSIGN(watch, passes.options());
    std::vector<compiler::AcceleratorOptions> accelerators;
    if (!cpu) {
      TENON_TRY_ASSIGN(found, load_accelerators(config));
      accelerators = std::move(*found);
    }
    return_freed_memory();
    TENON_TRY_ASSIGN(loaded, load(model, *watch, sizes_of_inputs(model, !accelerators.empty())));
    model.executable_only = print.empty();
    TENON_TRY_ASSIGN(compiled, cli::compile(*loaded, model, std::move(accelerators), *watch));
    if (!print.empty()) {
      const compiler::Module& module = print == "model"         ? loaded->model.module
                                       : print == "quantized"   ? compiled->quantized
                                       : print == "partitioned" ? compiled->partitioned
                                                                : compiled->kernels;
      // Larger constants are stored in a file that the text names: saved beside it, the text can be read again.
      const std::filesystem::path side = std::filesystem::path(output).replace_extension(print + ".npz");
      const compiler::Text text =
          compiler::print(*loaded->model.context, module, {.spans = true, .side = side.filename().string()});
      if (!text.side.empty()) {
        TENON_TRY(write_file(side, text.side));
      }
      print_stdout("{}", text.text);
    }
    if (explain) {
      print_stdout("{}", compiler::explain(compiled->partitioned, compiled->placements));
      if (compiled->costs) print_stdout("{}", compiler::explain(*compiled->costs));
      print_stdout("{}{}", compiled->units.empty() ? "" : "units of batches\n", compiled->units);
    }
    if (explain_schedules) {
      for (const auto& program : compiled->executable.programs) print_stdout("{}", explain_schedule(program));
    }
    TENON_TRY(runtime::save(compiled->executable, output));
    size_t instructions = 0, constants = 0;
    for (const auto& program : compiled->executable.programs) {
      instructions += program.notes.size();
      constants += program.constants.size();
    }
    if (json) {
      Json out;
      out.begin_object()
          .field("output", output)
          .field("programs", compiled->executable.programs.size())
          .field("instructions", instructions)
          .field("constant_bytes", constants)
          .field("partition_seconds", compiled->partition_seconds);
      if (compiled->memory) {
        const compiler::MemoryPlans& plans = *compiled->memory;
        out.key("memory").begin_object().field("planned_bytes", plans.plan().peak);
        if (plans.bound) out.field("most_bytes", *plans.bound);
        out.field("again", plans.repeated(plans.plan())).end();
      }
      if (const auto& costs = compiled->costs) {
        out.key("costs").begin_object().field("total", costs->total).field("bound", costs->bound);
        out.field("all_cpu", costs->all_cpu).field("first_match", costs->first_match).key("all_at").begin_object();
        for (const auto& [target, seconds] : costs->all_at) out.field(target, seconds);
        out.end().end();
      }
      write_operators(out, *compiled);
      print_stdout("{}", out.end().str());
    } else if (print.empty()) {  // the printed module is the whole output, so that it can be a file
      print_stdout("{}: {} accelerator program{} ({} instructions, {} bytes of weights and parameters)\n", output,
                   compiled->executable.programs.size(), compiled->executable.programs.size() == 1 ? "" : "s",
                   instructions, constants);
    }
    return {};
  }
};

}  // namespace

Action compile_model(Options& options) {
  auto command = std::make_shared<CompileCommand>();
  command->model.declare(options);
  options.required(command->output, "-o,--output", "FILE.tnx", "the executable");
  options.option(
      command->config, "--config", "NAME,...",
      "configuration of the accelerator: a name or a .json file; several are accelerators beside each other, "
      "the preferred first");
  options.flag(command->cpu, "--cpu", "everything on the CPU");
  options.option(command->model.target, "--target", "TRIPLE",
                 "target machine: x86_64, aarch64, armhf, riscv64, or an LLVM triple; default: this machine's");
  options.option(command->model.levels, "--levels", "LEVEL,...",
                 "of its processor, one chosen where it is loaded: x86-64-v3; without: all of its architecture");
  options.flag(command->batch, "--batch", "for runs of many instances in batches of their operators");
  options.repeated(command->shared, "--shared", "NAME", "--batch: an input that all instances share; may be repeated");
  options.option(command->budget, "--budget", "BYTES",
                 "memory of the tensors of one run, as 64MiB: kernels are called again to stay within it (tenon plan)");
  options.flag(command->explain, "--explain", "print where each operator runs, and why");
  options.flag(
      command->explain_schedules, "--explain-schedule",
      "print the cycles of each layer on the accelerator, its roofline, and what binds it: lanes, requantizer, "
      "reads, stores, latency, buffers, or fill and drain");
  options.choice(command->print, "--print", {"model", "quantized", "partitioned", "kernels"},
                 "print the module at this station; its larger constants go to OUTPUT.STATION.npz");
  command->passes.declare(options);
  options.flag(command->json, "--json", "figures as JSON");
  options.footer("tenon compile model.onnx --shapes N=1 --calibrate data.npz:calib --divide 255 -o model.tnx");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
