// tenon plan: the memory of an executable, or what a model, or its training step, costs within less memory.
#include <fmt/format.h>

#include "compiler/cli/executable_text.h"
#include "compiler/cli/training_step.h"
#include "compiler/frontend/onnx.h"
#include "runtime/executable/executable.h"
#include "support/json.h"
#include "support/number.h"
#include "support/output.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct PlanCommand {
  std::string model, entry = "main", budget;
  TrainingStepOptions training;
  bool train = false, json = false;

  Status run() {
    if (model.ends_with(".tnx")) return show_executable();
    compiler::CompileOptions options;
    options.budget = 0;
    options.kernels_only = budget.empty();  // the frontier alone
    if (!budget.empty()) {
      TENON_TRY_ASSIGN(bytes, read_bytes("--budget", budget));
      options.budget = static_cast<int64_t>(*bytes);
    }
    TENON_TRY_ASSIGN(loaded, load());
    TENON_TRY_ASSIGN(compiled, compile_for_this_machine(*loaded, options));
    const compiler::MemoryPlans& plans = *compiled->memory;
    if (json) {
      print_stdout("{}", as_json(plans));
      return {};
    }
    print_stdout("{} kernels; {} bytes of inputs{}\n{}", plans.step.log.calls.size(), plans.step.log.constant_bytes(),
                 train ? ", weights and states" : "", str(plans));
    if (plans.bound) print_stdout("the code of the chosen plan takes {} bytes at most\n", *plans.bound);
    return {};
  }

 private:
  // Whose plan is made already.
  Status show_executable() const {
    if (train || json || !budget.empty()) {
      return error("--train, --budget and --json plan a model, and the plan of an executable is made", model,
                   "give the model that it was compiled from", Fault::kUsage);
    }
    TENON_TRY_ASSIGN(executable, runtime::load(model));
    print_plan(*executable);
    return {};
  }

  Expected<compiler::Model> load() {
    TENON_TRY_ASSIGN(open, compiler::read_model(model, {}, {}, entry));
    TENON_TRY(compiler::check_entry(*open, model));
    if (!train) {
      TENON_TRY_ASSIGN(sizes, compiler::parse_shapes(training.shapes));
      return compiler::load_model(model, *sizes, {}, {}, entry);
    }
    TENON_TRY_ASSIGN(sizes, sizes_of_batch(*open, training.shapes, training.batch));
    TENON_TRY_ASSIGN(bound, compiler::read_model(model, *sizes));
    TENON_TRY_ASSIGN(weights, compiler::lift_parameters(*bound->context, bound->module, bound->entry, training.frozen));
    TENON_TRY(compiler::make_training_step(*bound->context, bound->module, *weights, training.step));
    return std::move(*bound);
  }

  static std::string as_json(const compiler::MemoryPlans& plans) {
    Json out;
    out.begin_object().field("kernels", plans.step.log.calls.size());
    out.field("input_bytes", plans.step.log.constant_bytes()).field("chosen", plans.chosen);
    if (plans.bound) out.field("code_bytes", *plans.bound);
    out.key("plans").begin_array();
    for (const compiler::RematPlan& plan : plans.frontier) {
      out.begin_object().field("bytes", plan.peak).field("cost_ns", plan.cost);
      out.field("calls", plan.order.size()).field("found_by", plan.found_by).end();
    }
    return out.end().end().str();
  }
};

}  // namespace

Action plan_memory(Options& options) {
  auto command = std::make_shared<PlanCommand>();
  options.argument(command->model, "MODEL",
                   "an executable (.tnx), whose plan is printed, or a model: .onnx, .tn or .tnb");
  options.option(command->entry, "--entry", "NAME", "the function that is planned");
  options.option(command->budget, "--budget", "BYTES", "bytes of tensors, as 64MiB: marks the plan that is taken");
  options.flag(command->train, "--train", "plan the training step of the model, by the options of tenon train");
  command->training.declare(options);
  options.flag(command->json, "--json", "figures as JSON");
  options.footer("tenon plan digits.onnx --train --batch 50 --budget 20MiB");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
