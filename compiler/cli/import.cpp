// tenon import: what is supported of a model, and what a pattern matches in it, before anything is compiled.
#include <fmt/format.h>

#include "compiler/cli/command.h"
#include "compiler/cli/model_options.h"
#include "compiler/frontend/onnx.h"
#include "compiler/pipeline/import_check.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct Import {
  std::string model, shapes, pattern, config = "default";
  bool check = false, cpu = false;
  PluginOptions plugins;

  Status run() const {
    if (check == !pattern.empty()) {
      return error("tenon import only checks models, with one of --check and --pattern", {},
                   "give --check or --pattern 'conv2d(_, const)', or write the module with tenon convert MODEL.onnx -o "
                   "MODULE.tn",
                   Fault::kUsage);
    }
    TENON_TRY_ASSIGN(bound, compiler::parse_shapes(shapes));
    std::vector<compiler::AcceleratorOptions> accelerators;
    if (!cpu) {
      TENON_TRY_ASSIGN(found, load_accelerators(config));
      accelerators = std::move(*found);
    }
    TENON_TRY_ASSIGN(targets, plugins.open());
    if (!check) {
      TENON_TRY_ASSIGN(found, compiler::check_pattern(model, *bound, accelerators, pattern, *targets));
      print_stdout("{}", compiler::text(*found));
      return {};
    }
    TENON_TRY_ASSIGN(report, compiler::check_import(model, *bound, accelerators, *targets));
    print_stdout("{}", compiler::text(*report));
    const size_t problems = report->nodes.problems.size();
    if (problems == 0) return {};
    return error(fmt::format("{} node{} not supported", problems, problems == 1 ? " is" : "s are"), model);
  }
};

}  // namespace

Action import_model(Options& options) {
  auto command = std::make_shared<Import>();
  options.argument(command->model, "MODEL", "an ONNX file");
  options.flag(command->check, "--check", "print each operator with its support per target, and what is missing");
  options.option(command->pattern, "--pattern", "TEXT",
                 "print the matches of a pattern in the operators that the targets receive, and near misses: "
                 "'relu?(%y: conv2d[groups=1](%x, %w: const))' (compiler/partition/pattern_text.h has the grammar)");
  options.option(command->shapes, "--shapes", "NAME=SIZE,...", "values of the model's unknown sizes");
  options.option(command->config, "--config", "NAME,...",
                 "configuration of the accelerator, or of several: a name or a .json file");
  options.flag(command->cpu, "--cpu", "for the CPU, and plugins, alone");
  command->plugins.declare(options);
  options.footer("tenon import --check model.onnx --shapes N=1");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
