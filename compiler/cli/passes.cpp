// tenon passes, tenon opt: the compiler's passes, listed, and run on a module.
#include "compiler/passes/pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/batch/units.h"
#include "compiler/cli/pass_options.h"
#include "compiler/frontend/onnx.h"
#include "compiler/ir/text.h"
#include "compiler/passes/memory.h"
#include "compiler/pipeline/pipeline.h"
#include "support/json.h"
#include "support/output.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using compiler::Pass;

Status list(bool json) {
  Json out;
  out.begin_object().key("passes").begin_array();
  for (const Pass& pass : compiler::all_passes()) {
    if (json) out.begin_object().field("name", pass.name).field("documentation", pass.documentation).end();
    else print_stdout("{:<18}{}\n", pass.name, pass.documentation);
  }
  const auto pipeline = [&](std::string_view name, std::span<const Pass> passes) {
    out.key(name).begin_array();
    if (!json) print_stdout("\n{}:", name);
    for (const Pass& pass : passes) {
      if (json) out.value(pass.name);
      else print_stdout(" {}", pass.name);
    }
    out.end();
  };
  out.end();
  pipeline("standard", compiler::standard_passes());
  pipeline("kernels", compiler::kernel_passes());
  pipeline("compile", compiler::compile_steps());
  if (json) {
    print_stdout("{}", out.end().str());
    return {};
  }
  print_stdout("\n\n");
  for (const Pass& step : compiler::compile_steps()) print_stdout("{:<18}{}\n", step.name, step.documentation);
  return {};
}

// Prints each function's memory plan, with the offset of each tensor.
void print_memory(compiler::Context& context, const compiler::Module& module) {
  compiler::for_each_function(module, [&](compiler::Symbol name, const compiler::Function& function) {
    const compiler::MemoryPlan plan = compiler::plan_memory(context, module, function);
    print_stdout("@{}: {}\n", context.name(name), compiler::str(plan));
    for (const compiler::PlannedTensor& tensor : plan.tensors) {
      const auto* type = function.type(tensor.var).tensor();
      const std::string of = type ? context.str(function.type(tensor.var)) : fmt::format("field {}", tensor.field);
      const bool inside = tensor.offset != compiler::PlannedTensor::kOutside;
      print_stdout("  {:<12} {:>9}  {}, {} {}\n", inside ? fmt::format("at {}", tensor.offset) : "outside",
                   tensor.bytes == 0 ? "?" : fmt::format("{}", tensor.bytes), of,
                   tensor.first == tensor.last ? "binding" : "bindings",
                   tensor.first == tensor.last ? fmt::format("{}", tensor.first)
                                               : fmt::format("{} to {}", tensor.first, tensor.last));
    }
  });
}

struct OptCommand {
  std::string model, shapes, passes, output;
  std::vector<std::string> shared;
  bool spans = false, strict_shapes = false, memory = false, units = false;
  PassFlags flags;

  Status run() const {
    TENON_TRY_ASSIGN(sizes, compiler::parse_shapes(shapes));
    TENON_TRY_ASSIGN(options, flags.options({}));
    std::vector<Pass> chosen = compiler::standard_passes();
    if (!passes.empty() || units) {
      TENON_TRY_ASSIGN(found, compiler::find_passes(split(passes.empty() ? "specialize,dead_code" : passes)));
      if (!passes.empty()) chosen.clear();
      chosen.insert(chosen.end(), found->begin(), found->end());
    } else {
      chosen.insert(chosen.end(), compiler::kernel_passes().begin(), compiler::kernel_passes().end());
    }
    if (!units && !shared.empty()) {
      return error("--shared is for the instances of --units", model, "add --units", Fault::kUsage);
    }
    TENON_TRY_ASSIGN(model, compiler::read_model(this->model, *sizes, {.strict_shapes = strict_shapes}));
    TENON_TRY_ASSIGN(module, compiler::run_passes(*model->context, std::move(model->module), chosen, *options));
    if (units) {
      TENON_TRY(make_units(*model, *module));
      if (output.empty()) return {};
    }
    if (memory) {
      print_memory(*model->context, *module);
      if (output.empty()) return {};
    }
    if (!output.empty()) return compiler::save(*model->context, *module, output);
    // The requested print-outs are the output; without a request the module is printed, whole where it needs no second
    // file.
    if (flags.prints()) return {};
    compiler::Text text = compiler::print(*model->context, *module, {.spans = spans});
    if (!text.side.empty()) text = compiler::print(*model->context, *module, {.spans = spans, .constants = false});
    print_stdout("{}", text.text);
    return {};
  }

 private:
  // Adds the units of batches to the module, and prints them.
  Status make_units(const compiler::Model& model, compiler::Module& module) const {
    const compiler::Function* entry = module.function(model.entry);
    if (!entry)
      return error(fmt::format("the module has no function @{}", model.context->name(model.entry)), this->model);
    TENON_TRY_ASSIGN(own, compiler::batch::own_inputs(*model.context, *entry, shared));
    compiler::batch::Units made = compiler::batch::make_units(*model.context, std::move(module), model.entry, *own);
    print_stdout("{}", compiler::batch::explain(*model.context, made));
    module = std::move(made.module);
    return {};
  }
};

}  // namespace

Action opt(Options& options) {
  auto command = std::make_shared<OptCommand>();
  options.argument(command->model, "MODULE", "a .tn module or an .onnx model");
  options.option(command->passes, "-p,--passes", "NAME,...",
                 "run these, in this order; otherwise the standard ones and those for kernels");
  options.flag(command->strict_shapes, "--strict-shapes",
               "sizes that are not proved to fit are an error instead of a check at run time");
  options.option(command->output, "-o,--output", "FILE.tn", "file for the module; default: the module is printed");
  options.option(command->shapes, "--shapes", "NAME=SIZE,...", "values of unknown sizes of an .onnx model");
  options.flag(command->memory, "--memory",
               "print the memory plan of each function: the offsets of its tensors in the arena, and the arena's size");
  options.flag(
      command->units, "--units",
      "print what batches of instances would join: units of operators with the inputs that all instances share, "
      "or why a unit is not batched; -o has the module with them");
  options.repeated(command->shared, "--shared", "NAME", "--units: an input that all instances share; may be repeated");
  options.flag(command->spans, "--spans", "print where each binding came from");
  command->flags.declare(options);
  options.footer("tenon passes lists the passes.\ntenon opt m.tn --passes inline,simplify,cse --diff-passes all");
  return [command] { return command->run(); };
}

Action list_passes(Options& options) {
  auto json = std::make_shared<bool>(false);
  options.flag(*json, "--json", "print JSON");
  return [json] { return list(*json); };
}

}  // namespace tenon::cli
