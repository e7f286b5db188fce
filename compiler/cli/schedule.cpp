// tenon schedule: how the kernel of an operator comes to be: its loops as the operator's lowering gives them, the steps
// of its schedule, and the loops that they result in.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/backends/cuda/region.h"
#include "compiler/cli/model_options.h"
#include "compiler/ir/operator.h"
#include "compiler/kernels/kernels.h"
#include "compiler/kernels/schedule.h"
#include "compiler/loop/text.h"
#include "compiler/lower/native.h"
#include "compiler/schedules/user_schedule.h"
#include "runtime/native/native.h"
#include "runtime/run/results.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct ScheduleCommand {
  using Binding = compiler::Binding;
  using Context = compiler::Context;
  using Function = compiler::Function;
  using Machine = compiler::Machine;
  using Module = compiler::Module;
  using UserSchedule = compiler::schedules::UserSchedule;

  ModelOptions model;
  std::string op, level, steps, output;

  Status run() {
    if (level.empty() && !runtime::host_levels().empty()) level = runtime::host_levels().front();
    const Machine* known = compiler::find_machine(level);
    if (!known) return error(fmt::format("there is no level '{}'", level), {}, known_levels(), Fault::kUsage);
    Machine machine = *known;
    TENON_TRY_ASSIGN(inexact, parse_inexact(model));
    machine.inexact = *inexact;
    std::vector<UserSchedule> own;
    if (!steps.empty()) {
      TENON_TRY_ASSIGN(text, read_text(steps));
      TENON_TRY_ASSIGN(read, compiler::schedules::parse_schedules(*text, steps, op));
      own = std::move(*read);
    }
    TENON_TRY(runtime::check_output(output, "--output", std::vector<std::string>{model.model, steps}));
    TENON_TRY_ASSIGN(loaded, load(model));
    ModelOptions reference = model;
    reference.kernels_only = true;
    TENON_TRY_ASSIGN(compiled, cli::compile(*loaded, reference, {}));
    Context& context = *loaded->model.context;
    const Function& main = *compiled->kernels.function(loaded->model.entry);
    std::vector<std::string> names;
    size_t found = 0;
    for (const Binding& binding : main.body.bindings) {
      if (const auto* loops = loop_function_of(compiled->kernels, binding)) {
        names.emplace_back(context.name(loops->name));
        if (op != names.back()) continue;
        if (found++ > 0) print_stdout("\n");
        TENON_TRY(print(context, *loops, machine, compiler::schedules::find_schedule(own, {op}, level)));
        continue;
      }
      const auto group = group_of(context, compiled->kernels, main, binding);
      if (!group) continue;
      const std::vector<std::string> inside = compiler::kernels::kernel_names(context, *group);
      names.insert(names.end(), inside.begin(), inside.end());
      if (std::ranges::find(inside, op) == inside.end()) continue;
      if (found++ > 0) print_stdout("\n");
      const UserSchedule* schedule = compiler::schedules::find_schedule(own, inside, level);
      TENON_TRY(print(context, compiled->kernels, *group, machine, schedule));
    }
    if (found > 0) return output.empty() ? Status() : write_file(output, saved);
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    return error(fmt::format("no kernel of the CPU computes '{}'", op), model.model,
                 fmt::format("operators and values with kernels: {}", fmt::join(names, ", ")), Fault::kUsage);
  }

 private:
  static std::string known_levels() {
    std::vector<std::string_view> names;
    for (const std::string_view architecture : compiler::kCpuArchitectures)
      for (const Machine& machine : compiler::machines_of(architecture)) names.push_back(machine.name);
    return fmt::format("the levels are {}", fmt::join(names, ", "));
  }

  // The user-defined function that is called, of which no group computes a part.
  static const compiler::loop::Function* loop_function_of(const Module& kernels, const Binding& binding) {
    const auto* call = std::get_if<compiler::Call>(&binding.value);
    const auto* symbol = call ? std::get_if<compiler::Symbol>(&call->callee) : nullptr;
    return symbol ? kernels.loop_function(*symbol) : nullptr;
  }

  static std::optional<Function> group_of(Context& context, const Module& kernels, const Function& main,
                                          const Binding& binding) {
    if (std::holds_alternative<compiler::Apply>(binding.value))
      return compiler::single_operator(context, main, binding).function;
    const auto* call = std::get_if<compiler::Call>(&binding.value);
    const auto* symbol = call ? std::get_if<compiler::Symbol>(&call->callee) : nullptr;
    const Function* callee = symbol ? kernels.function(*symbol) : nullptr;
    return callee && callee->composite == "fused" ? std::optional(*callee) : std::nullopt;
  }

  Status print(Context& context, const compiler::loop::Function& loops, const Machine& machine,
               const UserSchedule* own) {
    if (machine.threads > 0)
      return error(fmt::format("@{} is a loop function of the module, which runs on the CPU", op), model.model,
                   known_levels(), Fault::kUsage);
    print_stdout("// for {}\n{}\n", machine.name, compiler::loop::print(context, loops));
    TENON_TRY_ASSIGN(scheduled, compiler::kernels::schedule_loops(context, loops, own));
    print_result(context, *scheduled, machine);
    return {};
  }

  Status print(Context& context, const Module& kernels, const Function& group, const Machine& machine,
               const UserSchedule* own) {
    auto kernel = compiler::kernels::make_kernel(context, kernels, "kernel", group, machine, {}, own);
    if (!kernel && own) return std::unexpected(std::move(kernel.error()));
    if (!kernel) {
      print_stdout("// no native kernel: {}\n", kernel.error().what);
      return {};
    }
    for (const compiler::kernels::OperatorKnobs& knobs : kernel->knobs)
      print_stdout("// {}: {}\n", knobs.key, compiler::kernels::str(knobs.settings()));
    if (!kernel->refused.empty()) print_stdout("// a step was refused: {}\n", kernel->refused);
    print_stdout("// for {}\n{}\n", machine.name, compiler::loop::print(context, kernel->algorithm));
    const bool is_gpu = machine.threads > 0;
    compiler::kernels::Scheduled scheduled{std::move(kernel->function), {}};
    if (is_gpu) {
      TENON_TRY_ASSIGN(step, compiler::cuda::bound_step(context, kernels, group, machine, own));
      scheduled.function = std::move(step->function);
    } else if (!own) {
      scheduled = compiler::kernels::schedule(context, std::move(scheduled.function));
    }
    scheduled.steps.insert(scheduled.steps.begin(), kernel->steps.begin(), kernel->steps.end());
    print_result(context, scheduled, machine);
    return {};
  }
  void print_result(const Context& context, const compiler::kernels::Scheduled& scheduled, const Machine& machine) {
    for (const std::string& step : scheduled.steps) print_stdout("{}\n", step);
    print_stdout("\n{}", compiler::loop::print(context, scheduled.function));
    // One file has one schedule for the operator: that of its first kernel.
    if (saved.empty()) saved = compiler::schedules::text_of(op, machine.name, scheduled.steps);
  }

  std::string saved;  // the steps, as a file
};

}  // namespace

Action print_schedule(Options& options) {
  auto command = std::make_shared<ScheduleCommand>();
  command->model.declare(options);
  options.required(command->op, "--op", "NAME", "the operator, as conv2d, or the value that the kernel computes");
  options.option(command->level, "--level", "NAME",
                 "instruction set level, as x86-64-v3, which need not be this machine's; default: its best");
  options.option(command->steps, "--steps", "FILE", "a schedule of your own: steps, one in a line");
  options.option(command->output, "-o,--output", "FILE",
                 "also write the steps to a file that, edited, is a schedule for tenon compile --schedule");
  options.footer("tenon schedule model.onnx --shapes N=1 --op conv2d --level x86-64-v3");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
