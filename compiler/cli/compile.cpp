// tenon compile: a model into an executable file.
#include <fmt/format.h>

#include "compiler/cli/compilation_json.h"
#include "compiler/cli/executable_options.h"
#include "compiler/cli/explain_schedule.h"
#include "compiler/cli/model_options.h"
#include "compiler/cli/pass_options.h"
#include "compiler/ir/text.h"
#include "runtime/run/results.h"
#include "support/file.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct CompileCommand {
  ModelOptions model;
  PassFlags passes;
  ExecutableOptions executable;
  std::string output, print;
  bool explain = false, explain_schedules = false, json = false;

  Status run() {
    if (json && (explain || explain_schedules || !print.empty() || passes.prints())) {
      return error("--json prints figures only, the options that print modules and reasons print text", {},
                   "give one of them", Fault::kUsage);
    }
    TENON_TRY(executable.apply(model));
    std::vector<std::string> inputs{model.model, model.records};
    inputs.insert(inputs.end(), model.calibration_data.begin(), model.calibration_data.end());
    TENON_TRY(runtime::check_output(output, "--output", inputs));
    TENON_TRY_ASSIGN(watch, passes.options(compiler::compile_steps()));
    TENON_TRY_ASSIGN(accelerators, executable.accelerators());
    return_freed_memory();
    TENON_TRY_ASSIGN(loaded, load(model, *watch, sizes_of_inputs(model, !accelerators->empty())));
    model.executable_only = print.empty();
    TENON_TRY_ASSIGN(compiled, cli::compile(*loaded, model, std::move(*accelerators), *watch));
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
          .field("constant_bytes", constants);
      write_compilation(out, *compiled);
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
  command->executable.declare(options, command->model);
  options.flag(command->explain, "--explain", "print where each operator runs, and why");
  options.flag(
      command->explain_schedules, "--explain-schedule",
      "print the cycles of each layer on the accelerator, its roofline, and what binds it: lanes, requantizer, "
      "reads, stores, latency, buffers, or fill and drain");
  options.choice(command->print, "--print", {"model", "quantized", "partitioned", "kernels"},
                 "print the module at this stage; its larger constants go to OUTPUT.STAGE.npz");
  command->passes.declare(options);
  options.flag(command->json, "--json", "figures as JSON");
  options.footer("tenon compile model.onnx --shapes N=1 --calibrate data.npz:calib --divide 255 -o model.tnx");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
